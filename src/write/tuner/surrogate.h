// SPDX-License-Identifier: Apache-2.0
// What a few measured settings of a source's knobs let one expect of the others: a Gaussian process
// over settings (Rasmussen and Williams, 2006), small enough to be built anew for each proposal.
// Pure.
//
// Values of one knob are alike to the degree exp(-rate * distance), where the distance is that of
// their places in the knob's list. Half of what settings have in common is the mean of that over
// the knobs (knobs that act each on their own), half is the product (which act together). Each knob
// has a rate of its own, chosen by the likelihood of what was seen under a log-normal prior: a knob
// that does not matter has a low one. Level and scale of the values are not known beforehand: they
// follow from what was seen, the scale under an inverse-gamma prior.
//
// The prior's numbers are own; the rate and the halves were chosen on two recorded landscapes
// (results/search.md).
#pragma once

#include <cstddef>
#include <vector>

#include "write/tuner/knob_history.h"

namespace kernelpro {

struct SurrogatePrior {
  double rate = 0.4;    // median of a knob's rate, for neighbouring values
  double spread = 1;    // of the rate's logarithm, as a standard deviation
  double sd = 0.5;      // of the values
  double weight = 2;    // of `sd`, in values seen
  double noise = 0.02;  // share of the variance that is no function of the setting
  double apart = 0.5;   // share of the variance of knobs that act each on their own
};

class Surrogate {
 public:
  struct Axis {
    int values = 0;
    bool ordered = true;  // false: any two values are equally far apart
  };
  // REQUIRES: as many values as settings, at least one. Takes n^3 for n of them: a hundred are
  // some milliseconds.
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
  std::vector<double> lower_;    // Cholesky factor, by rows
  std::vector<double> weights_;  // the whole matrix's solution for the values less their level
  std::vector<double> ones_;     // the factor's solution for ones
  double ones_squared_ = 1;
  double level_ = 0;
  double variance_ = 1;
};

}  // namespace kernelpro
