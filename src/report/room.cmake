# SPDX-License-Identifier: Apache-2.0
foreach(part base diff charts tree table detail run report diagnosis)
  kernelpro_embed(${library} page_${part}_js src/report/page/${part}.js)
endforeach()
kernelpro_embed(${library} page_css src/report/page/page.css)
