// SPDX-License-Identifier: Apache-2.0
#include "cli/parse.h"

int main(int argc, char** argv) { return kernelpro::run_kernelpro(argc, argv); }
