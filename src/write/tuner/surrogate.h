// SPDX-License-Identifier: Apache-2.0
// Predicts the unmeasured settings of a source's knobs from the measured ones: a Gaussian process
// over settings (Rasmussen and Williams, 2006), small enough to rebuild for each proposal. Pure.
//
// The correlation of two values of one knob is exp(-rate * distance), where the distance is that of
// their positions in the knob's list. Half of the covariance of two settings is the mean of that
// over the knobs (knobs that act independently), half is the product (knobs that interact). Each
// knob has its own rate, chosen by likelihood under a log-normal prior: a knob that does not matter
// has a low one. Level and scale of the values are inferred from the data, the scale under an
// inverse-gamma prior.
//
// The prior's numbers are our own; the rate and the halves were chosen on two recorded landscapes
// (results/search.md).
#pragma once

#include <cstddef>
#include <vector>

#include "write/tuner/knob_history.h"

namespace kernelpro {

struct SurrogatePrior {
  double rate = 0.4;    // median of a knob's rate, for neighboring values
  double spread = 1;    // standard deviation of the rate's logarithm
  double sd = 0.5;      // of the values
  double weight = 2;    // of `sd`, in observed values
  double noise = 0.02;  // share of the variance that does not depend on the setting
  double apart = 0.5;   // share of the variance of independently acting knobs
};

class Surrogate {
 public:
  struct Axis {
    int values = 0;
    bool ordered = true;  // false: any two values are equally far apart
  };
  // REQUIRES: as many values as settings, at least one. O(n^3) for n of them: a hundred take a few
  // milliseconds.
  Surrogate(std::vector<Axis> knobs, std::vector<Setting> settings, std::vector<double> values,
            const SurrogatePrior& prior);

  struct Expected {
    double mean = 0;
    double sd = 0;
  };
  Expected at(const Setting& setting) const;

 private:
  double alike(const Setting& a, const Setting& b) const;
  void tabulate(std::size_t knob);
  double likelihood();
  double factorize();
  void choose_rates();

  std::vector<Axis> knobs_;
  std::vector<Setting> settings_;
  std::vector<double> values_;
  SurrogatePrior prior_;
  std::vector<double> rates_;
  std::vector<std::vector<double>> alike_;  // [knob][places apart]
  // Of the latest likelihood().
  std::vector<double> lower_;    // Cholesky factor, row by row
  std::vector<double> weights_;  // full matrix solved for the values minus their level
  std::vector<double> ones_;     // Cholesky factor solved for ones
  double ones_squared_ = 1;
  double level_ = 0;
  double variance_ = 1;
};

}  // namespace kernelpro
