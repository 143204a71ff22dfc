# Install rules: the library with its plugin beside it, headers, device headers and specs, notices of what
# is linked in, and what find_package(lacuna) and pkg-config read. The components: library, tools.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_INSTALL_LIBDIR)
  set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Libraries, below the prefix")
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS lacuna EXPORT lacuna_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(LACUNA_LLVM)
  # OPTIONAL: without the plugin the library interprets.
  install(TARGETS lacuna_host LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library OPTIONAL)
endif()
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/lacuna
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/templates DESTINATION ${CMAKE_INSTALL_DATADIR}/lacuna
        COMPONENT library FILES_MATCHING PATTERN "*.cuh")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/specs DESTINATION ${CMAKE_INSTALL_DATADIR}/lacuna
        COMPONENT library OPTIONAL FILES_MATCHING PATTERN "*.json")
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/NOTICES.md ${PROJECT_SOURCE_DIR}/tools/dev/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library OPTIONAL)
if(LACUNA_TOOLS)
  install(PROGRAMS $<TARGET_FILE:lacuna_cli> DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()

# The prefix is known when it is installed (`cmake --install --prefix`), or later where the tree is
# moved: package files name what lies below it in relation to themselves.
function(lacuna_way_to_prefix folder result)
  if(IS_ABSOLUTE ${folder})
    set(way ${CMAKE_INSTALL_PREFIX})
  else()
    file(RELATIVE_PATH way /prefix/${folder} /prefix)
    string(REGEX REPLACE "/$" "" way ${way})
    set(way ${ARGN}/${way})
  endif()
  set(${result} ${way} PARENT_SCOPE)
endfunction()
function(lacuna_below_prefix prefix folder result)
  if(IS_ABSOLUTE ${folder})
    set(${result} ${folder} PARENT_SCOPE)
  else()
    set(${result} ${prefix}/${folder} PARENT_SCOPE)
  endif()
endfunction()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
install(EXPORT lacuna_targets FILE lacuna-targets.cmake NAMESPACE lacuna:: DESTINATION ${package}
        COMPONENT library)
lacuna_way_to_prefix(${package} prefix "\${CMAKE_CURRENT_LIST_DIR}")
lacuna_below_prefix(${prefix} ${CMAKE_INSTALL_DATADIR} data)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/lacuna-config.cmake
"include(\"\${CMAKE_CURRENT_LIST_DIR}/lacuna-targets.cmake\")
include(\"\${CMAKE_CURRENT_LIST_DIR}/lacuna-kernels.cmake\")
get_filename_component(lacuna_SPEC_DIR \"${data}/lacuna/specs\" ABSOLUTE)
")
lacuna_way_to_prefix(${package} prefix "\${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
lacuna_below_prefix(${prefix} ${CMAKE_INSTALL_BINDIR} lacuna_bindir)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/kernels.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/lacuna-kernels.cmake @ONLY)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lacuna-config-version.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lacuna-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/lacuna-kernels.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/lacuna-config-version.cmake
        DESTINATION ${package} COMPONENT library)

lacuna_way_to_prefix(${CMAKE_INSTALL_LIBDIR}/pkgconfig pc_prefix "\${pcfiledir}")
foreach(kind LIBDIR INCLUDEDIR DATADIR)
  lacuna_below_prefix("\${prefix}" ${CMAKE_INSTALL_${kind}} pc_${kind})
endforeach()
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/lacuna.pc.in ${CMAKE_CURRENT_BINARY_DIR}/lacuna.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lacuna.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT library)
