# Debian packages by CPack (tests/deb.sh): libsamebytes1, libsamebytes-dev, samebytes and samebytes-doc, from the components
# of cmake/install.cmake. Configure with -DCMAKE_INSTALL_PREFIX=/usr -DBUILD_SHARED_LIBS=ON, build, then run cpack.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME samebytes)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Samebytes maintainers <maintainers@samebytes.invalid>" CACHE STRING "Maintainer of the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL libraries development documentation)
if(TARGET samebytes_cli)
  list(APPEND CPACK_COMPONENTS_ALL command)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
# Texts, permissions and what strip leaves in the static library.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_files.cmake)

set(samebytes_library_package libsamebytes${samebytes_soversion})
set(samebytes_about "Samebytes trains and runs neural networks on any OpenCL device in shared
virtual memory: a data loader, Eigen, your own code and every kernel read and
write one allocation. It needs no GPU: PoCL runs it on the cores of a plain
machine.")

# samebytes_package(COMPONENT NAME SECTION SUMMARY LAST_PARAGRAPH)
macro(samebytes_package component name section summary paragraph)
  string(TOUPPER ${component} samebytes_upper)
  set(CPACK_DEBIAN_${samebytes_upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${samebytes_upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${samebytes_upper}_DESCRIPTION "${summary}\n${samebytes_about}\n\n${paragraph}")
endmacro()

samebytes_package(libraries ${samebytes_library_package} libs "neural networks on any OpenCL device, shared library"
  "This package has the shared library.")
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${PROJECT_BINARY_DIR}/generated/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/generated/triggers)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")

samebytes_package(development libsamebytes-dev libdevel "neural networks on any OpenCL device, headers"
  "This package has the headers, the static library and the files for CMake and
pkg-config.")
# The shared library, what the headers of interop include, and what the static library was built with.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${samebytes_library_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "opencl-headers, opencl-clhpp-headers, libeigen3-dev")
list(JOIN samebytes_debian_libraries ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS)

samebytes_package(command samebytes science "train and run neural networks on any OpenCL device"
  "This package has the samebytes command.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "${samebytes_library_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")

samebytes_package(documentation samebytes-doc doc "neural networks on any OpenCL device, guide and examples"
  "This package has the guide and the examples.")
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
include(CPack)
