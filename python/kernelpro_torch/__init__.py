# SPDX-License-Identifier: Apache-2.0
"""The PyTorch side of KernelPro: kernelpro starts a separate process for each role.

The package depends only on torch and the standard library. kernelpro embeds its source and unpacks
it into the cache, so there is nothing to install.
"""
