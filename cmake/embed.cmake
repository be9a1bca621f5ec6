# SPDX-License-Identifier: Apache-2.0
# kernelpro_embed(target NAME file): embeds a text file as `extern const std::string_view NAME`
# (namespace kernelpro::embedded, declared in the generated header "embedded/NAME.h").
function(kernelpro_embed target name file)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(out ${CMAKE_BINARY_DIR}/embedded/${name})
  add_custom_command(
    OUTPUT ${out}.cc ${out}.h
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DSOURCE=${source} -DOUT=${out}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake)
  target_sources(${target} PRIVATE ${out}.cc)
  set_source_files_properties(${out}.cc PROPERTIES UNITY_GROUP embedded)
  target_include_directories(${target} PUBLIC ${CMAKE_BINARY_DIR})
endfunction()
