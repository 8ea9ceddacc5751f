# What `cmake --install` puts where: the library, include/samebytes, the command, SamebytesConfig.cmake and samebytes.pc.
include(CMakePackageConfigHelpers)
set(samebytes_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Samebytes)

install(TARGETS samebytes EXPORT SamebytesTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET samebytes_cli)
  install(TARGETS samebytes_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(samebytes_pages)
    install(FILES ${samebytes_pages}/samebytes.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${samebytes_pages}/samebytes.bash RENAME samebytes
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${samebytes_pages}/_samebytes DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${samebytes_pages}/samebytes.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
  if(BUILD_SHARED_LIBS)
    file(RELATIVE_PATH samebytes_bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(samebytes_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${samebytes_bin_to_lib}")
  endif()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/samebytes DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(EXPORT SamebytesTargets NAMESPACE Samebytes:: DESTINATION ${samebytes_cmake_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/SamebytesConfig.cmake.in
  ${CMAKE_BINARY_DIR}/generated/SamebytesConfig.cmake INSTALL_DESTINATION ${samebytes_cmake_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/SamebytesConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/SamebytesConfig.cmake
  ${CMAKE_BINARY_DIR}/generated/SamebytesConfigVersion.cmake DESTINATION ${samebytes_cmake_dir})

# A static library hands its own needs on to whoever links it; a shared one keeps them. Paths are relative to the file,
# so that an installed tree may be moved.
file(RELATIVE_PATH samebytes_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" samebytes_pc_up "${samebytes_pc_up}")
set(samebytes_pc_requires "OpenCL clblast fmt zlib${samebytes_part_requires}")
set(samebytes_pc_libs -pthread)
foreach(library ${CMAKE_DL_LIBS})
  string(APPEND samebytes_pc_libs " -l${library}")
endforeach()
foreach(library ${OpenMP_CXX_LIBRARIES})
  if(NOT library MATCHES "pthread")
    string(APPEND samebytes_pc_libs " ${library}")
  endif()
endforeach()
if(MPI_C_FOUND)
  foreach(library ${MPI_C_LIBRARIES})
    string(APPEND samebytes_pc_libs " ${library}")
  endforeach()
endif()
if(SAMEBYTES_ONNX)
  string(APPEND samebytes_pc_libs " ${SAMEBYTES_ONNX_PROTO}")
endif()
if(BUILD_SHARED_LIBS)
  set(samebytes_pc_private ".private")
  set(samebytes_pc_libs_line "Libs: -L\${libdir} -lsamebytes\nLibs.private: ${samebytes_pc_libs}")
else()
  set(samebytes_pc_private "")
  set(samebytes_pc_libs_line "Libs: -L\${libdir} -lsamebytes ${samebytes_pc_libs}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/samebytes.pc.in ${CMAKE_BINARY_DIR}/generated/samebytes.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/samebytes.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
