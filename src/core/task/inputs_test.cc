// SPDX-License-Identifier: Apache-2.0
#include "core/task/inputs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "core/task/key.h"

namespace kernelpro {
namespace {

std::vector<double> draw(DType dtype, Init init, std::uint64_t seed, int count) {
  Tensor t{"x", Role::kInput, dtype, {"N"}, init, 0};
  std::vector<char> bytes(static_cast<std::size_t>(count) * 8);
  draw_inputs(t, 0, key_of(seed), 0, count, bytes.data());
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(element_as_double(dtype, bytes.data(), i));
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, low = 1e300, high = -1e300;
};
Moments moments(const std::vector<double>& v) {
  Moments m;
  for (const double x : v) {
    m.mean += x / static_cast<double>(v.size());
    m.low = std::min(m.low, x);
    m.high = std::max(m.high, x);
  }
  for (const double x : v)
    m.deviation += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(Inputs, NormalHasItsMoments) {
  const Moments m = moments(draw(DType::kFp32, {Init::Kind::kNormal, 3, 2}, 7, 200'000));
  EXPECT_NEAR(m.mean, 3, 0.02);
  EXPECT_NEAR(m.deviation, 2, 0.02);
  EXPECT_LT(m.high, 3 + 12);
}

// Whatever vectors draw them, however a tensor is cut: as draw.h defines each element.
TEST(Inputs, EachIsAsDefined) {
  constexpr std::int64_t kCount = 1000;
  for (const DType dtype :
       {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt32, DType::kInt64}) {
    for (const Init& init :
         {Init{Init::Kind::kUniform, -1, 3}, Init{Init::Kind::kNormal, 0.5, 2},
          Init{Init::Kind::kIntegers, -7, 90}, Init{Init::Kind::kBernoulli, 0.3, 0},
          Init{Init::Kind::kConstant, 1, 0}}) {
      const Tensor t{"x", Role::kInput, dtype, {"N"}, init, 0};
      const kp::DrawSpec spec = draw_spec(t);
      const kp::Key key = key_of(11);
      const auto bytes = static_cast<std::size_t>(dtype_bytes(dtype));
      std::vector<char> defined(kCount * bytes), drawn(kCount * bytes);
      for (std::int64_t i = 0; i < kCount; ++i) {
        const int in_block = kp::block_elements(spec);
        const kp::Block block = kp::chacha(key, 3, static_cast<unsigned long long>(i / in_block));
        const unsigned long long bits = kp::draw_bits(spec, block, static_cast<int>(i % in_block));
        std::memcpy(defined.data() + static_cast<std::size_t>(i) * bytes, &bits, bytes);
      }
      for (std::int64_t begin = 0, count = 1; begin < kCount;
           begin += count, count = 2 * count + 1) {
        count = std::min(count, kCount - begin);
        draw_inputs(t, 3, key, begin, count,
                    drawn.data() + static_cast<std::size_t>(begin) * bytes);
      }
      EXPECT_EQ(drawn, defined) << dtype_name(dtype) << " " << static_cast<int>(init.kind);
    }
  }
}

TEST(Inputs, UniformStaysInRange) {
  const Moments m = moments(draw(DType::kFp32, {Init::Kind::kUniform, -1, 3}, 7, 200'000));
  EXPECT_NEAR(m.mean, 1, 0.02);
  EXPECT_NEAR(m.deviation, 4 / std::sqrt(12.0), 0.02);
  EXPECT_GE(m.low, -1);
  EXPECT_LE(m.high, 3);
}

// No grid tells drawn numbers from others: at every size their last digits are as random as the
// first.
TEST(Inputs, HaveRandomDigitsAtEverySize) {
  for (const Init& init : {Init{Init::Kind::kUniform, 0, 1}, Init{Init::Kind::kUniform, -1, 3},
                           Init{Init::Kind::kNormal, 0, 1}, Init{Init::Kind::kNormal, 0.5, 2}}) {
    std::map<int, std::array<int, 4>> of_size;  // how many, and how many with each last digit set
    for (const double v : draw(DType::kFp32, init, 3, 400'000)) {
      const unsigned bits = kp::float_bits(static_cast<float>(v));
      std::array<int, 4>& seen = of_size[static_cast<int>((bits >> 23) & 255)];
      ++seen[0];
      for (unsigned digit = 0; digit < 3; ++digit) {
        seen[digit + 1] += static_cast<int>(bits >> digit & 1u);
      }
    }
    ASSERT_GT(of_size.size(), 10u);
    for (const auto& [size, seen] : of_size) {
      const double spread = 5 * std::sqrt(seen[0] / 4.0);
      for (int digit = 1; digit < 4; ++digit) {
        EXPECT_NEAR(seen[static_cast<std::size_t>(digit)], seen[0] / 2.0, spread)
            << "exponent " << size << " of " << seen[0];
      }
    }
  }
}

TEST(Inputs, UniformsHonourBothEnds) {
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    for (const Init& init :
         {Init{Init::Kind::kUniform, 0, 1}, Init{Init::Kind::kUniform, 0.1, 0.7},
          Init{Init::Kind::kUniform, -0.7, -0.3}, Init{Init::Kind::kUniform, 1, 1.001}}) {
      const Moments m = moments(draw(dtype, init, 11, 100'000));
      EXPECT_GE(m.low, init.a) << dtype_name(dtype);
      EXPECT_LT(m.high, init.b) << dtype_name(dtype);
    }
    // Ends that the type does not have are those inside.
    Tensor t{"x", Role::kInput, dtype, {"N"}, {Init::Kind::kUniform, 0.1, 0.7}, 0};
    const kp::DrawSpec spec = draw_spec(t);
    EXPECT_GE(static_cast<double>(spec.first), 0.1);
    EXPECT_LT(static_cast<double>(spec.last), 0.7);
    EXPECT_NEAR(spec.first, 0.1, 0.001);
    EXPECT_NEAR(spec.last, 0.7, 0.004);
  }
  for (const double v : draw(DType::kInt32, {Init::Kind::kUniform, 0, 4}, 5, 10'000)) {
    ASSERT_TRUE(v >= 0 && v <= 3) << v;
  }
}

TEST(Inputs, IntegersCoverTheirRangeAndNoMore) {
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kFp32}) {
    std::vector<int> seen(7, 0);
    for (const double v : draw(dtype, {Init::Kind::kIntegers, -3, 3}, 9, 7000)) {
      ASSERT_GE(v, -3);
      ASSERT_LE(v, 3);
      ASSERT_EQ(v, std::floor(v));
      ++seen[static_cast<std::size_t>(v + 3)];
    }
    for (const int n : seen) EXPECT_NEAR(n, 1000, 150);
  }
}

TEST(Inputs, BernoulliAndConstant) {
  EXPECT_NEAR(moments(draw(DType::kBool, {Init::Kind::kBernoulli, 0.25, 0}, 1, 40'000)).mean, 0.25,
              0.01);
  for (const double v : draw(DType::kInt32, {Init::Kind::kConstant, 5, 0}, 1, 10)) EXPECT_EQ(v, 5);
}

TEST(Inputs, AnyRangeGivesTheSameElements) {
  const Tensor t{"x", Role::kInput, DType::kFp32, {"N"}, {Init::Kind::kNormal, 0, 1}, 0};
  std::vector<float> all(100), part(10);
  draw_inputs(t, 2, key_of(5), 0, 100, all.data());
  draw_inputs(t, 2, key_of(5), 37, 10, part.data());
  EXPECT_EQ(std::memcmp(all.data() + 37, part.data(), sizeof(float) * 10), 0);
  draw_inputs(t, 2, key_of(6), 37, 10, part.data());
  EXPECT_NE(std::memcmp(all.data() + 37, part.data(), sizeof(float) * 10), 0)
      << "seeds must matter";
  draw_inputs(t, 3, key_of(5), 37, 10, part.data());
  EXPECT_NE(std::memcmp(all.data() + 37, part.data(), sizeof(float) * 10), 0)
      << "tensors must differ";
}

// The published vectors for an all-zero key and nonce.
TEST(Inputs, ChaCha) {
  const auto first = [](const kp::Block& block) {
    return std::array{block.words[0], block.words[1], block.words[2], block.words[3]};
  };
  EXPECT_EQ(first(kp::chacha<20>(kp::Key{}, 0, 0)),
            (std::array{0x903df1a0ade0b876ull, 0x28bd8653e56a5d40ull, 0x1aed8da0b819d2bdull,
                        0xc70d778bccef36a8ull}));
  EXPECT_EQ(first(kp::chacha(kp::Key{}, 0, 0)),
            (std::array{0xd6405f892fef003eull, 0xa1a5091fe8b85b7full, 0x3b7f9acec30e842cull,
                        0x1e1a71ef88e11b18ull}));
  EXPECT_NE(first(kp::chacha(kp::Key{}, 0, 0)), first(kp::chacha(kp::Key{}, 0, 1)));
  EXPECT_NE(first(kp::chacha(kp::Key{}, 0, 0)), first(kp::chacha(kp::Key{}, 1, 0)));
}

TEST(Keys, AreFreshAndTravelAsText) {
  const kp::Key key = fresh_key();
  EXPECT_NE(key, fresh_key());
  EXPECT_NE(fresh_secret(), fresh_secret());
  EXPECT_EQ(key_from_text(key_to_text(key)), key);
  EXPECT_EQ(seed_of(key_of(0x123456789abcdef0)), 0x123456789abcdef0u);
  const std::string text = key_to_text(key);
  for (const std::string& bad : {std::string(), text.substr(1), text + "0", "x" + text.substr(1),
                                 "+" + text.substr(1), " " + text.substr(1)}) {
    EXPECT_FALSE(key_from_text(bad)) << bad;
  }
}

TEST(Half, AgreesWithTheCompilersConversion) {
  std::uint32_t state = 12345;
  for (int i = 0; i < 2'000'000; ++i) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t bits =
        i < 100'000 ? 0x33000000u + static_cast<std::uint32_t>(i) * 1350u : state;
    const float value = kp::bits_float(bits);
    const _Float16 hardware = static_cast<_Float16>(value);
    std::uint16_t expected;
    std::memcpy(&expected, &hardware, 2);
    const std::uint16_t got = kp::to_half(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(kp::from_half(got)));
      continue;
    }
    ASSERT_EQ(got, expected) << std::hexfloat << value;
    ASSERT_EQ(kp::from_half(got), static_cast<float>(hardware));
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(kp::to_bfloat16(1.0f), 0x3f80);
  EXPECT_EQ(kp::to_bfloat16(kp::bits_float(0x3f808000u)), 0x3f80);  // a tie goes to even
  EXPECT_EQ(kp::to_bfloat16(kp::bits_float(0x3f818000u)), 0x3f82);
  EXPECT_EQ(kp::to_bfloat16(kp::bits_float(0x3f808001u)), 0x3f81);
  EXPECT_EQ(kp::to_bfloat16(INFINITY), 0x7f80);
  EXPECT_TRUE(std::isnan(kp::from_bfloat16(kp::to_bfloat16(NAN))));
}

}  // namespace
}  // namespace kernelpro
