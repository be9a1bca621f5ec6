# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} live_js src/serve/web/page/live.js)
kernelpro_embed(${library} live_html src/serve/web/page/live.html)
# The tests are clients of the real program.
kernelpro_tests_need(serve/web kernelpro)
