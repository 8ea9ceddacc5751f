"""Samebytes for Conan 2: conan create packaging/conan"""

import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy

required_conan_version = ">=2.0"

# The parts that may be left out (docs/building.md), with what each needs. ONNX and MPI are off: Conan's packages of ONNX
# are not those that the sources read.
PARTS = {
    "images": ["libpng/[>=1.6 <2]", "libjpeg/[>=9]"],
    "archives": ["libarchive/[>=3.6 <4]"],
    "text": ["utf8proc/[>=2.6 <3]", "pcre2/[>=10.40 <11]"],
    "sound": ["kissfft/[>=131]"],
}


class SamebytesRecipe(ConanFile):
    name = "samebytes"
    version = "0.1.0"
    description = "Neural networks on any OpenCL device, on the same bytes"
    license = "Apache-2.0"
    topics = ("machine-learning", "neural-network", "opencl")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], **{part: [True, False] for part in PARTS}}
    default_options = {"shared": False, **{part: True for part in PARTS}}

    def export_sources(self):
        checkout = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "cl/*", "engine/*", "include/*", "examples/data/*"):
            copy(self, pattern, checkout, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        for reference in ("clblast/[>=1.5 <2]", "eigen/[>=3.4 <4]", "fmt/[>=9 <11]", "nlohmann_json/[>=3.11 <4]",
                          "opencl-clhpp-headers/[>=2022]", "opencl-icd-loader/[>=2021]", "zlib/[>=1.2.11 <2]"):
            self.requires(reference)
        for part, references in PARTS.items():
            if self.options.get_safe(part):
                for reference in references:
                    self.requires(reference)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({f"SAMEBYTES_{name}": False for name in (
            "BOTH", "CLI", "TESTS", "BENCHMARKS", "EXAMPLES", "MPI", "ONNX")})
        toolchain.cache_variables.update({f"SAMEBYTES_{part.upper()}": bool(self.options.get_safe(part)) for part in PARTS})
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["samebytes"]
        self.cpp_info.set_property("cmake_file_name", "Samebytes")
        self.cpp_info.set_property("cmake_target_name", "Samebytes::samebytes")
        self.cpp_info.set_property("pkg_config_name", "samebytes")
