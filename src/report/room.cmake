# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(kernelpro_report report_css src/report/report.css)
kernelpro_embed(kernelpro_report report_js src/report/report.js)
kernelpro_embed(kernelpro_report export_plan_on_host src/report/export_texts/plan_on_host.cuh)
kernelpro_embed(kernelpro_report export_model_new src/report/export_texts/model_new.py)
