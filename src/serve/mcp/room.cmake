# SPDX-License-Identifier: Apache-2.0
# The tests are clients of the real program.
kernelpro_tests_need(serve/mcp kernelpro)
