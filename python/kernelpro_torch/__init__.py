# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of KernelPro: every role is a process of its own that is started by kernelpro.

The package needs nothing but torch and the standard library. kernelpro carries its text inside the
program and unpacks it into the cache, so nothing has to be installed.
"""
