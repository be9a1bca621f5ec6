# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} export_plan_on_host src/report/export/texts/plan_on_host.cuh)
kernelpro_embed(${library} export_model_new src/report/export/texts/model_new.py)
kernelpro_embed(${library} export_build_cuda src/report/export/texts/build_cuda.py)
kernelpro_embed(${library} export_build_cpu src/report/export/texts/build_cpu.py)
