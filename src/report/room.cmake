# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(kernelpro_report report_css src/report/report.css)
kernelpro_embed(kernelpro_report report_js src/report/report.js)
