# SPDX-License-Identifier: Apache-2.0
# kernelpro_unity(target room file...): compiles several files of a room as one source, so that
# headers and templates are compiled once for all of them: a clean build takes less than half the
# time. Files that define the same name (two helpers in anonymous namespaces) are never combined,
# and a file that redefines a type or constant of a header stays alone. Only definitions that begin
# in the first column are seen, which is where clang-format puts them. If the compiler still finds a
# name twice, rename one, or set KERNELPRO_UNITY=OFF.
#
# Off by default with a compiler launcher (ccache), which works better file by file, and without
# optimisation, for debuggers and editors. Such builds also reveal a missing #include.
set(unity_default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(unity_default OFF)
endif()
option(KERNELPRO_UNITY "compile several files of a room as one source" ${unity_default})
# GCC collects its garbage from 128 MiB on. Starting later costs a compiler a fifth more memory and
# saves a tenth of its time.
if(KERNELPRO_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  add_compile_options(--param=ggc-min-expand=100 --param=ggc-min-heapsize=524288)
endif()

# Maximum bytes per group: keeps two compilers busy without running out of memory.
set(KERNELPRO_UNITY_BYTES 100000)

# Sets `out` to the names that a file defines: functions, types, constants, macros.
function(kernelpro_defined_names file out)
  file(READ ${file} text)
  # Characters that would end or nest a CMake list.
  string(REPLACE ";" " " text "\n${text}")
  string(REPLACE "[" "(" text "${text}")
  string(REPLACE "]" ")" text "${text}")
  string(REPLACE "\\" "/" text "${text}")
  string(REGEX MATCHALL "\n[A-Za-z#][A-Za-z0-9_:<>,*& ]*[ *&][A-Za-z0-9_]+ ?[({=]" found "${text}")
  string(REGEX MATCHALL "\n(#define|struct|class|enum class) +[A-Za-z0-9_:]+" types "${text}")
  set(names "")
  list(FILTER found EXCLUDE REGEX "^\n(namespace|struct|class|enum) ")
  foreach(line ${found} ${types})
    string(REGEX REPLACE " ?[({=]$" "" line "${line}")
    string(REGEX REPLACE "^.*[ *&]" "" line "${line}")
    list(APPEND names ${line})
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# Sets `out` to the types and constants defined in the headers of a room, base/ and core/.
function(kernelpro_names_of_headers room out)
  set(src ${PROJECT_SOURCE_DIR}/src)
  file(GLOB_RECURSE headers ${src}/base/*.h ${src}/core/*.h ${src}/${room}/*.h)
  list(FILTER headers EXCLUDE REGEX "/src/core/device/")
  set(names "")
  foreach(header ${headers})
    file(STRINGS ${header} lines REGEX "^((struct|class|enum class) [A-Za-z0-9_]+.*{|inline constexpr )")
    foreach(line ${lines})
      string(REGEX REPLACE "^(struct|class|enum class) ([A-Za-z0-9_]+).*" "\\2" name "${line}")
      string(REGEX REPLACE "^inline constexpr .* (k[A-Za-z0-9_]+).*" "\\1" name "${name}")
      list(APPEND names ${name})
    endforeach()
  endforeach()
  set(${out} ${names} PARENT_SCOPE)
endfunction()

function(kernelpro_unity target room)
  if(NOT KERNELPRO_UNITY)
    return()
  endif()
  kernelpro_names_of_headers(${room} header_names)
  set(groups 0)
  foreach(file ${ARGN})
    kernelpro_defined_names(${file} names)
    set(alone FALSE)
    foreach(name ${names})
      if(name IN_LIST header_names)
        set(alone TRUE)
      endif()
    endforeach()
    if(alone)
      continue()  # a file outside all groups is compiled alone
    endif()
    file(SIZE ${file} bytes)
    set(at 0)
    while(at LESS groups)
      math(EXPR together "${bytes_${at}} + ${bytes}")
      set(free TRUE)
      if(together GREATER KERNELPRO_UNITY_BYTES)
        set(free FALSE)
      endif()
      foreach(name ${names})
        if(name IN_LIST names_${at})
          set(free FALSE)
          break()
        endif()
      endforeach()
      if(free)
        break()
      endif()
      math(EXPR at "${at} + 1")
    endwhile()
    if(at EQUAL groups)
      math(EXPR groups "${groups} + 1")
      set(names_${at} "")
      set(together ${bytes})
    endif()
    list(APPEND names_${at} ${names})
    set(bytes_${at} ${together})
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${at})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
