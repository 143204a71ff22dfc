# Install rules: the library with its plugin beside it, headers, device headers and specs, and what
# find_package(lacuna) and pkg-config read. The components: library, tools.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Libraries, below the prefix")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS lacuna EXPORT lacuna_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
if(LACUNA_LLVM)
  # OPTIONAL: without the plugin the library interprets.
  install(TARGETS lacuna_host LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library OPTIONAL)
endif()
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/lacuna
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/templates DESTINATION ${CMAKE_INSTALL_DATADIR}/lacuna
        COMPONENT library FILES_MATCHING PATTERN "*.cuh")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/specs DESTINATION ${CMAKE_INSTALL_DATADIR}/lacuna
        COMPONENT library OPTIONAL FILES_MATCHING PATTERN "*.json")
install(PROGRAMS $<TARGET_FILE:lacuna_cli> DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
install(EXPORT lacuna_targets FILE lacuna-config.cmake NAMESPACE lacuna:: DESTINATION ${package}
        COMPONENT library)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lacuna-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lacuna-config-version.cmake DESTINATION ${package}
        COMPONENT library)

configure_file(${CMAKE_CURRENT_SOURCE_DIR}/lacuna.pc.in ${CMAKE_CURRENT_BINARY_DIR}/lacuna.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lacuna.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT library)
