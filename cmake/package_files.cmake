# Run by CPack before it writes the packages: adds to each what Debian's policy wants of every package, and compresses
# what it wants compressed.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH sets it
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component})
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(doc ${root}/usr/share/doc/${package})
  file(WRITE ${doc}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Samebytes

Files: *
Copyright: 2026 Samebytes contributors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
  file(WRITE ${doc}/changelog
"${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}; CHANGELOG.md in the sources says what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
  file(GLOB pages ${root}/usr/share/man/man*/*[0-9])
  execute_process(COMMAND gzip -9nf ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
  # CPack strips programs and shared libraries; of a static one the linker needs neither debug information nor comments.
  file(GLOB_RECURSE archives ${root}/*.a)
  foreach(archive IN LISTS archives)
    execute_process(COMMAND strip --strip-debug --remove-section=.comment --remove-section=.note
      --enable-deterministic-archives ${archive} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  # CPack writes scripts that call ldconfig and knows no way to leave them out; the trigger is there beside them.
  if(component STREQUAL libraries)
    file(WRITE ${root}/usr/share/lintian/overrides/${package}
      "# CPack writes these scripts beside our trigger\n${package}: maintscript-calls-ldconfig *\n")
  endif()
  # The licence is in copyright; examples and guide lie in the folder of the package that has them.
  file(REMOVE ${root}/usr/share/doc/samebytes/LICENSE)
  if(NOT package STREQUAL samebytes AND EXISTS ${root}/usr/share/doc/samebytes)
    file(GLOB texts ${root}/usr/share/doc/samebytes/*)
    file(COPY ${texts} DESTINATION ${doc})
    file(REMOVE_RECURSE ${root}/usr/share/doc/samebytes)
  endif()
endforeach()
