// SPDX-License-Identifier: Apache-2.0
#include "task/scaffold/c_source.h"

#include <gtest/gtest.h>

#include "task/scaffold/python_source.h"

namespace kernelpro {
namespace {

const CFunction* find(const std::vector<CFunction>& functions, const std::string& name) {
  for (const CFunction& f : functions) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

TEST(CTokens, CommentsTextsAndDirectives) {
  const auto tokens = c_tokens(
      "a // b\n/* c */ \"d // e\" R\"x(f )\" g)x\" 1'000.5e-3f\n#define H \\\n  i\n<<< j->k");
  std::vector<std::string_view> texts;
  for (const CToken& t : tokens) texts.push_back(t.text);
  EXPECT_EQ(texts,
            (std::vector<std::string_view>{"a", "\"d // e\"", "R\"x(f )\" g)x\"", "1'000.5e-3f",
                                           "#define H \\\n  i", "<<<", "j", "->", "k"}));
}

TEST(CFunctions, SignaturesOfManyKinds) {
  const auto functions = c_functions(R"(
struct S { void method(float* p) { } };
enum E { kA, kB };
static const int kTable[] = {1, 2, f(3)};
template <typename T, int N = (3 > 2 ? 4 : 5)>
__global__ void __launch_bounds__(256, 2)
kernel(const T* __restrict__ x, /* in */
       T *__restrict__ const y, // out
       const unsigned int n, float alpha = 1.0f, int sizes[4] = {});
namespace a { namespace b {
extern "C" {
void launcher(const std::vector<int64_t>& v, float4* out, cudaStream_t stream = nullptr) {
  if (n > 0) { kernel<float><<<n, 256>>>(x, y, n); }
}
}
} }
int main(int argc, char** argv) { return 0; }
)");
  ASSERT_EQ(functions.size(), 3u);
  const CFunction* kernel = find(functions, "kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_TRUE(kernel->kernel);
  EXPECT_FALSE(kernel->defined);
  EXPECT_EQ(kernel->template_names, (std::vector<std::string>{"T", "N"}));
  ASSERT_EQ(kernel->parameters.size(), 5u);
  EXPECT_EQ(kernel->parameters[0].name, "x");
  EXPECT_TRUE(kernel->parameters[0].is_const);
  EXPECT_EQ(kernel->parameters[0].pointers, 1);
  EXPECT_EQ(kernel->parameters[1].name, "y");
  EXPECT_FALSE(kernel->parameters[1].is_const);
  EXPECT_EQ(kernel->parameters[2].type, "unsigned int");
  EXPECT_EQ(kernel->parameters[2].name, "n");
  EXPECT_EQ(kernel->parameters[3].name, "alpha");
  EXPECT_EQ(kernel->parameters[4].pointers, 1);
  const CFunction* launcher = find(functions, "launcher");
  ASSERT_NE(launcher, nullptr);
  EXPECT_TRUE(launcher->defined);
  EXPECT_EQ(launcher->parameters[1].type, "float4");
  EXPECT_EQ(launcher->parameters[2].type, "cudaStream_t");
  EXPECT_NE(find(functions, "main"), nullptr);
}

TEST(CFunctions, OneBranchOfEachConditional) {
  const auto functions = c_functions(R"(
#if 0
void off(float* x) {
#else
void on(float* x) {
#endif
}
#ifdef A
void first() {}
#elif B
void second() {}
#else
void third() {}
#endif
)");
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].name, "on");
  EXPECT_EQ(functions[1].name, "first");
}

TEST(CLaunches, ConfigurationsAndArguments) {
  const auto launches = c_launches(
      "void f() { k<float, 4><<<dim3(a, b), g(1, 2), 0, s>>>(x, y + 1, h(2, 3)); "
      "j<<<(n + 255) / 256, 256>>>(); }");
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].kernel, "k");
  EXPECT_EQ(launches[0].configuration,
            (std::vector<std::string>{"dim3(a, b)", "g(1, 2)", "0", "s"}));
  EXPECT_EQ(launches[0].arguments, (std::vector<std::string>{"x", "y + 1", "h(2, 3)"}));
  EXPECT_EQ(launches[1].kernel, "j");
  EXPECT_TRUE(launches[1].arguments.empty());
}

TEST(CUse, ReadsWritesAndLocalPointers) {
  const char* body =
      "{ float* row = out + r * n; row[i] = x[i]; y[i] += 1; atomicAdd(sum, 1.f); *flag = 2; "
      "const float* p = x + 1; use(p[0]); }";
  const auto use = [&](const char* name) {
    const CUse u = c_use(body, name);
    return std::string(u.read ? "r" : "") + (u.written ? "w" : "");
  };
  EXPECT_EQ(use("x"), "r");
  EXPECT_EQ(use("out"), "w");
  EXPECT_EQ(use("y"), "rw");
  EXPECT_EQ(use("sum"), "w");
  EXPECT_EQ(use("flag"), "w");
  EXPECT_EQ(use("absent"), "");
}

TEST(CSource, AnyBytesAreSafe) {
  const std::string source =
      "__global__ void k(float* x, int n) { x[0] = R\"(a)\"; } k<<<1, 2>>>(x, n);";
  for (std::size_t cut = 0; cut <= source.size(); ++cut) {
    for (const char* tail :
         {"", "(", "<<<", "\"", "R\"(", "/*", "#if", "{{{", "template <", "\\"}) {
      const std::string text = source.substr(0, cut) + tail;
      c_functions(text);
      c_launches(text);
      c_use(text, "x");
      python_blocks(text);
      python_strings(text);
    }
  }
}

TEST(Python, BlocksAndStrings) {
  const std::string source =
      "import torch\n\nN = 4  # it's four\nsrc = r'''\nclass NotOne:\n'''\n\n@wrap\ndef f(\n    "
      "x):\n"
      "    return \"a\\n\"\n\nclass Model(nn.Module):\n    '''Swish: x's'''\n    def g(self): "
      "pass\n";
  const auto blocks = python_blocks(source);
  std::string all;
  std::vector<std::string> names;
  for (const PythonBlock& block : blocks) {
    all += block.text;
    if (!block.name.empty()) names.push_back(block.name);
  }
  EXPECT_EQ(all, source);
  EXPECT_EQ(names, (std::vector<std::string>{"N", "src", "Model"}));
  const auto strings = python_strings(source);
  ASSERT_EQ(strings.size(), 3u);
  EXPECT_EQ(strings[0], "\nclass NotOne:\n");
  EXPECT_EQ(strings[1], "a\n");
  EXPECT_EQ(strings[2], "Swish: x's");
}

}  // namespace
}  // namespace kernelpro
