# SPDX-License-Identifier: Apache-2.0
# kernelpro_unity(target file...): compiles the files of a room a few at a time, as one source, so
# that headers and templates are compiled once for all of them: a clean build takes a third of the
# time. Files that define the same name (two helpers in anonymous namespaces) never come together;
# this looks only at definitions that begin in the first column, which is where clang-format puts
# them. Should the compiler still meet a name twice, rename one, or set KERNELPRO_UNITY=OFF.
#
# Off by default where a compiler launcher (ccache) is set, which does better file by file, and
# without optimisation, which is for debuggers and editors. Such builds also show a missing #include.
set(unity_default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(unity_default OFF)
endif()
option(KERNELPRO_UNITY "compile several files of a room as one source" ${unity_default})

# Sources of one group have this many bytes at most: two compilers stay busy, and have memory enough.
set(KERNELPRO_UNITY_BYTES 100000)

# Sets `out` to the names that a file defines: functions, types, constants, macros.
function(kernelpro_defined_names file out)
  file(READ ${file} text)
  # What would end or nest a list of CMake's.
  string(REPLACE ";" " " text "\n${text}")
  string(REPLACE "[" "(" text "${text}")
  string(REPLACE "]" ")" text "${text}")
  string(REPLACE "\\" "/" text "${text}")
  string(REGEX MATCHALL "\n[A-Za-z#][A-Za-z0-9_:<>,*& ]*[ *&][A-Za-z0-9_]+ ?[({=:]" found "${text}")
  string(REGEX MATCHALL "\n(#define|struct|class) +[A-Za-z0-9_]+" types "${text}")
  set(names "")
  list(FILTER found EXCLUDE REGEX "^\nnamespace ")
  foreach(line ${found} ${types})
    string(REGEX REPLACE " ?[({=:]$" "" line "${line}")
    string(REGEX REPLACE "^.*[ *&]" "" line "${line}")
    list(APPEND names ${line})
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${out} ${names} PARENT_SCOPE)
endfunction()

function(kernelpro_unity target)
  if(NOT KERNELPRO_UNITY)
    return()
  endif()
  set(groups 0)
  foreach(file ${ARGN})
    kernelpro_defined_names(${file} names)
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
