// SPDX-License-Identifier: Apache-2.0
// How probes change values that were drawn (core/device/shapes.h defines each shape), and what
// sparse inputs need: whether the results are linear in them, and how much honest arithmetic errs.
// Shared by both targets. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/task/mismatch.h"
#include "core/task/shapes.h"
#include "core/task/task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// Probe kLowBits, after drawing: changes the last digits of fp32 inputs, by up to 1/128
// (core/device/draw.h, lean_bits). Parameters stay: a kernel may rely on constant ones.
bool leans(const Tensor& tensor);

// Whether sums of few products show how precise these are.
bool shows_products(DrawKind kind);
// Those of short_sums.h.
bool has_short_sums(DrawKind kind);
// Whether a kind applies to tasks with matrix products, in fp32, alone.
bool wants_products(DrawKind kind);
// Whether a kind's draws differ by more than chance: in which tensor, which rows, which direction.
bool probe_varies(DrawKind kind);
// Rows of nearly equal elements add up the same rounding error, term by term: a naive sum of many
// errs by much more than chance would have it. So the scale of results on shapes is at least this
// many times their root mean square. A kernel that leaves something out errs by as much as they
// are.
inline constexpr double kShapeRoom = 10;
// Whether plain fp32 may fail on a kind's values, as softmax does on large ones: the results of a
// task folder's reference on nudged inputs show it. (A module's with rounded operands do.)
bool wants_nudged(DrawKind kind);
// kShapeRoom where it applies, else 0.
double least_scale(DrawKind kind);
// Whether the shape of a kind of probe may change a tensor of this task.
bool shape_applies(DrawKind kind, const Task& task);

// A kind that makes values large may give results that are not finite, or that depend on the last
// digits of the inputs, and then shows nothing. It is tried at several levels, from the first: as
// large as it gets; that large, but with one sign (exponentials of very negative numbers are zero);
// less large, which kinds of few elements try earlier. How many there are; 1 for kinds that make
// nothing large.
int probe_levels(DrawKind kind);

// kLone, kFaint: the inputs of which one gets large or small, as indices into Task::tensors: none
// if there is only one input. Small ones have the shape of an output, or part of it, as what is
// added to results has. Other kinds: none.
std::vector<int> named_candidates(DrawKind kind, const Task& task);
// Which of them a word of kShapeStream names; -1: none.
int named_input(DrawKind kind, const Task& task, std::uint64_t word);
// A fresh key that names `tensor`, one of them.
kp::Key naming_key(DrawKind kind, const Task& task, int tensor);

// How a probe changes each tensor after it was drawn; empty if it changes none. `linear`: for
// kSparse, the tensor to make sparse, and `addend`: whether something else is added to the results,
// beside which they get large; `word`: of kShapeStream; `level`: less than probe_levels.
std::vector<kp::ShapeSpec> probe_shapes(const Task& task, const std::vector<Shaped>& tensors,
                                        DrawKind kind, std::uint64_t word, int linear = -1,
                                        bool addend = false, int level = 0);
// Changes what a probe's plan drew: kLowBits, or the shapes. `specs`: may be empty. Whether a shape
// changed anything.
bool reshape_input(const Shaped& tensor, const std::vector<kp::ShapeSpec>& specs, std::size_t index,
                   DrawKind kind, const kp::Key& key, std::vector<char>* data);

// Sparse inputs. A sum of few products shows how precise the products are, whatever the order of
// summation; but only where the results are linear in each of the inputs. Otherwise they depend on
// long sums of other things too, or zeros are added up as exp(0). And only in tasks with matrix
// products: others may multiply by what they compute themselves, such as the cosine of a large
// number, which plain fp32 does less precisely than its products.
//
// The inputs that may be made sparse if so.
std::vector<int> linear_candidates(const Task& task);
bool multiplies(const Task& task, const Case& c);
// Times a power of two, which floating-point arithmetic takes exactly: results that are linear in
// the tensor, or affine, are multiplied by the same power (of large inputs, that an addend does not
// matter to).
// `others`: of the other inputs in fp32, and of the `parameters`.
std::vector<kp::ShapeSpec> power_shapes(const std::vector<Shaped>& tensors, int tensor,
                                        float factor, float others = 1, bool parameters = false);
inline constexpr float kLinearFactors[] = {0x1p60f, 0x1p61f, -0x1p60f, 0x1p-60f};
struct OutputLook {
  double rms = 0, low = 0, high = 0;
};
// From the looks at all floating outputs under the first three of kLinearFactors.
bool is_linear(const std::vector<OutputLook>& once, const std::vector<OutputLook>& doubled,
               const std::vector<OutputLook>& negated);

// From those under the first and the last: whether more than the tensor's share is left without it.
bool has_addend(const std::vector<OutputLook>& large, const std::vector<OutputLook>& gone);

// From those under the first factor, and under it when others are times kOtherFactor: whether the
// tensor is multiplied by any of them, or only added.
inline constexpr float kOtherFactor = 0x1p20f;
bool is_factor(const std::vector<OutputLook>& alone, const std::vector<OutputLook>& together);

// All floating inputs and parameters (`parameters`) times 1 +- `size`: results of honest arithmetic
// differ from exact ones by about as much as these do, wherever products and functions of single
// elements are concerned. `by`: more than that, for sums.
std::vector<kp::ShapeSpec> nudge_shapes(const std::vector<Shaped>& tensors, Precision precision,
                                        bool parameters, double by = 1);

// Probe kSparing. What sums hide shows where few of their terms count: errors of many terms average
// out, and those of a costly element vanish beside others. All elements but a few get one value, at
// each level another: zero, very negative, very large. The probe shows something where these few
// decide the results: where `all` differs from `background`, the results without them, by most of
// its own size.
std::vector<kp::ShapeSpec> background_alone(std::vector<kp::ShapeSpec> specs);
bool few_decide(const std::vector<OutputLook>& all, const std::vector<OutputLook>& background);

}  // namespace kernelpro
