# The static and the shared library, made of the same objects: samebytes_static and samebytes_shared.
# Samebytes::samebytes is the one that BUILD_SHARED_LIBS chooses. Reads samebytes_compiled (object libraries) and
# samebytes_libraries (what they need).

# The number after .so: a program runs with any library of the same number.
set(samebytes_soversion 1)

# What lies in include/samebytes is exported, everything else is hidden. The sources find the public headers through
# copies that do nothing but say so; for a user of the library the headers carry no mark.
set(samebytes_exported ${PROJECT_BINARY_DIR}/generated/exported)
file(GLOB_RECURSE samebytes_headers RELATIVE ${PROJECT_SOURCE_DIR}/include CONFIGURE_DEPENDS include/samebytes/*.h)
foreach(header IN LISTS samebytes_headers)
  file(CONFIGURE OUTPUT ${samebytes_exported}/${header} @ONLY CONTENT
"#pragma once
#pragma GCC visibility push(default)
#include \"@PROJECT_SOURCE_DIR@/include/${header}\"
#pragma GCC visibility pop
")
endforeach()

foreach(target IN LISTS samebytes_compiled)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} BEFORE PRIVATE ${samebytes_exported} ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/engine ${PROJECT_SOURCE_DIR}/cl)
  # The same bytes from any folder.
  target_compile_options(${target} PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=samebytes/
    -ffile-prefix-map=${PROJECT_BINARY_DIR}/=samebytes/build/)
endforeach()

list(TRANSFORM samebytes_compiled REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE samebytes_object_files)
foreach(kind static shared)
  string(TOUPPER ${kind} type)
  add_library(samebytes_${kind} ${type} ${samebytes_object_files})
  target_compile_features(samebytes_${kind} PUBLIC cxx_std_20)
  target_include_directories(samebytes_${kind}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Header-only libraries are of no concern to who links the installed library.
  target_link_libraries(samebytes_${kind} PUBLIC Threads::Threads $<BUILD_INTERFACE:samebytes_sanitizers>
    PRIVATE ${samebytes_libraries})
  set_target_properties(samebytes_${kind} PROPERTIES OUTPUT_NAME samebytes EXPORT_NAME ${kind} LINKER_LANGUAGE CXX)
endforeach()

# What the templates of other libraries leave in our objects stays inside.
set(samebytes_symbols ${PROJECT_SOURCE_DIR}/cmake/exported.map)
set_target_properties(samebytes_shared PROPERTIES SOVERSION ${samebytes_soversion}
  VERSION ${samebytes_soversion}.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${samebytes_symbols})
target_link_options(samebytes_shared PRIVATE LINKER:--version-script=${samebytes_symbols} LINKER:--as-needed)

set(samebytes_kind static)
if(BUILD_SHARED_LIBS)
  set(samebytes_kind shared)
endif()
add_library(Samebytes::samebytes ALIAS samebytes_${samebytes_kind})
set(samebytes_kinds static shared)
if(NOT SAMEBYTES_BOTH)
  set(samebytes_kinds ${samebytes_kind})
  foreach(kind static shared)
    if(NOT kind STREQUAL samebytes_kind)
      set_target_properties(samebytes_${kind} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endforeach()
endif()
