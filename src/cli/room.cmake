# SPDX-License-Identifier: Apache-2.0
# The tests run the real binary.
kernelpro_tests_need(cli kernelpro)
