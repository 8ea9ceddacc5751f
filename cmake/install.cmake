# What `cmake --install` puts where: the libraries, include/samebytes, the command with its manual page and completions,
# SamebytesConfig.cmake, samebytes.pc, the licence and the examples. `--component` takes one of
#   libraries     the shared library        development   headers, static library, CMake and pkg-config files
#   command       samebytes                 documentation the guide and the examples
# The target `uninstall` removes what the last installation wrote.
include(CMakePackageConfigHelpers)
set(samebytes_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Samebytes)
set(samebytes_doc_dir ${CMAKE_INSTALL_DATADIR}/doc/samebytes)
set(samebytes_generated ${PROJECT_BINARY_DIR}/generated)

foreach(kind IN LISTS samebytes_kinds)
  install(TARGETS samebytes_${kind} EXPORT SamebytesTargets_${kind}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries NAMELINK_COMPONENT development)
  install(EXPORT SamebytesTargets_${kind} NAMESPACE Samebytes:: DESTINATION ${samebytes_cmake_dir} COMPONENT development)
endforeach()
if(TARGET samebytes_cli)
  install(TARGETS samebytes_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  if(samebytes_pages)
    install(FILES ${samebytes_pages}/samebytes.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
    install(FILES ${samebytes_pages}/samebytes.bash RENAME samebytes
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
    install(FILES ${samebytes_pages}/_samebytes DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command)
    install(FILES ${samebytes_pages}/samebytes.fish
      DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
  endif()
  # A system's own folders need no path.
  if(BUILD_SHARED_LIBS AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    file(RELATIVE_PATH samebytes_bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(samebytes_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${samebytes_bin_to_lib}")
  endif()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/samebytes DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${samebytes_doc_dir} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${samebytes_doc_dir} COMPONENT documentation
  FILES_MATCHING PATTERN "[0-9][0-9]_*.cpp" PATTERN "*.yaml" PATTERN "workloads" EXCLUDE PATTERN "data" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/guide DESTINATION ${samebytes_doc_dir} COMPONENT documentation
  FILES_MATCHING PATTERN "*.md")

string(REPLACE ";" " " samebytes_kinds_text "${samebytes_kinds}")
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/SamebytesConfig.cmake.in
  ${samebytes_generated}/SamebytesConfig.cmake INSTALL_DESTINATION ${samebytes_cmake_dir})
write_basic_package_version_file(${samebytes_generated}/SamebytesConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${samebytes_generated}/SamebytesConfig.cmake ${samebytes_generated}/SamebytesConfigVersion.cmake
  DESTINATION ${samebytes_cmake_dir} COMPONENT development)

# The shared library brings its own needs along; for the static one they are in Libs.private, or in Libs where nothing
# else is installed. Names only: the linker knows the folders.
file(RELATIVE_PATH samebytes_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" samebytes_pc_up "${samebytes_pc_up}")
samebytes_link_names(samebytes_names OpenCL clblast fmt z ${samebytes_part_names} ${CMAKE_DL_LIBS} ${OpenMP_CXX_LIBRARIES}
  ${samebytes_mpi_libraries})
list(REMOVE_DUPLICATES samebytes_names)
set(samebytes_pc_libs "-pthread")
foreach(name IN LISTS samebytes_names)
  if(name MATCHES "/")
    string(APPEND samebytes_pc_libs " ${name}")
  elseif(NOT name STREQUAL "pthread")
    string(APPEND samebytes_pc_libs " -l${name}")
  endif()
endforeach()
if("shared" IN_LIST samebytes_kinds)
  set(samebytes_pc_libs_line "Libs: -L\${libdir} -lsamebytes\nLibs.private: ${samebytes_pc_libs}")
else()
  set(samebytes_pc_libs_line "Libs: -L\${libdir} -lsamebytes ${samebytes_pc_libs}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/samebytes.pc.in ${samebytes_generated}/samebytes.pc @ONLY)
install(FILES ${samebytes_generated}/samebytes.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall VERBATIM
    COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)
endif()
