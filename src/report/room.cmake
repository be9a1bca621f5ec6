# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} report_css src/report/report.css)
kernelpro_embed(${library} report_js src/report/report.js)
