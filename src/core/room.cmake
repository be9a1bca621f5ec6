# SPDX-License-Identifier: Apache-2.0
# Texts passed to compilers at run time.
kernelpro_embed(${library} plan_vocabulary src/core/device/plan.h)
kernelpro_embed(${library} draw_source src/core/device/draw.h)
kernelpro_embed(${library} shapes_source src/core/device/shapes.h)
