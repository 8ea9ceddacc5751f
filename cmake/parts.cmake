# Parts of the library that a program may do without. With SAMEBYTES_<PART>=OFF the files of the part are not built, but
# engine/*/without_<part>.cpp, which throws an error that names the option.
# Sets samebytes_left_out (a pattern of files), samebytes_part_libraries, samebytes_part_includes and
# samebytes_part_packages (for SamebytesConfig.cmake) and samebytes_part_requires (for samebytes.pc).
option(SAMEBYTES_IMAGES "Read PNG and JPEG (libpng-dev, libjpeg62-turbo-dev)" ON)
option(SAMEBYTES_ARCHIVES "Read data sets inside archives (libarchive-dev)" ON)
option(SAMEBYTES_TEXT "Tokenizers: the tables of Unicode's characters (libutf8proc-dev)" ON)
option(SAMEBYTES_SOUND "Spectrograms (libkissfft-dev)" ON)
option(SAMEBYTES_ONNX "Read ONNX models, where protobuf and ONNX's schema are found (libonnx-dev, libprotobuf-dev)" ON)
option(SAMEBYTES_CLI "Build the samebytes command (libcli11-dev, libyaml-cpp-dev)" ${PROJECT_IS_TOP_LEVEL})

set(samebytes_left_out "/without_(none")
set(samebytes_part_libraries "")
set(samebytes_part_includes "")
set(samebytes_part_packages "")
set(samebytes_part_requires "")

# samebytes_part(NAME FILES: pattern of those that are left out without it)
macro(samebytes_part name files)
  string(TOLOWER ${name} samebytes_part_name)
  if(SAMEBYTES_${name})
    string(APPEND samebytes_left_out "|${samebytes_part_name}")
  else()
    string(PREPEND samebytes_left_out "/(${files})[.]cpp$|")
  endif()
endmacro()

samebytes_part(IMAGES "image_png|image_jpeg")
if(SAMEBYTES_IMAGES)
  find_package(PNG REQUIRED)
  find_package(JPEG REQUIRED)
  list(APPEND samebytes_part_libraries PNG::PNG JPEG::JPEG)
  list(APPEND samebytes_part_packages PNG JPEG)
  string(APPEND samebytes_part_requires " libpng libjpeg")
endif()

samebytes_part(ARCHIVES "archive")
if(SAMEBYTES_ARCHIVES)
  find_package(LibArchive REQUIRED)
  list(APPEND samebytes_part_libraries LibArchive::LibArchive)
  list(APPEND samebytes_part_packages LibArchive)
  string(APPEND samebytes_part_requires " libarchive")
endif()

samebytes_part(TEXT "utf8")
if(SAMEBYTES_TEXT)
  find_library(SAMEBYTES_UTF8PROC utf8proc REQUIRED)  # it has no CMake package
  find_path(SAMEBYTES_UTF8PROC_INCLUDE utf8proc.h REQUIRED)
  list(APPEND samebytes_part_libraries utf8proc)
  list(APPEND samebytes_part_includes ${SAMEBYTES_UTF8PROC_INCLUDE})
  string(APPEND samebytes_part_requires " libutf8proc")
endif()

samebytes_part(SOUND "data/fft")
if(SAMEBYTES_SOUND)
  find_path(SAMEBYTES_KISSFFT_INCLUDE kissfft/kissfft.hh REQUIRED)  # only its header
  list(APPEND samebytes_part_includes ${SAMEBYTES_KISSFFT_INCLUDE})
endif()

if(SAMEBYTES_ONNX)
  find_package(Protobuf QUIET)
  find_library(SAMEBYTES_ONNX_PROTO onnx_proto)
  find_path(SAMEBYTES_ONNX_INCLUDE onnx/onnx_pb.h)
  if(NOT Protobuf_FOUND OR NOT SAMEBYTES_ONNX_PROTO OR NOT SAMEBYTES_ONNX_INCLUDE)
    message(STATUS "ONNX models: no (libonnx-dev, libprotobuf-dev)")
    set(SAMEBYTES_ONNX OFF)
  endif()
endif()
# all but those that begin with w, as without_onnx.cpp does
samebytes_part(ONNX "onnx/[^w/][^/]*")
if(SAMEBYTES_ONNX)
  list(APPEND samebytes_part_libraries ${SAMEBYTES_ONNX_PROTO} protobuf::libprotobuf)
  list(APPEND samebytes_part_packages Protobuf)
  string(APPEND samebytes_part_requires " protobuf")
endif()

string(APPEND samebytes_left_out ")[.]cpp$")
