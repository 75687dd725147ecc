// SPDX-License-Identifier: MIT
//! Finds libflexguard by pkg-config: installed, or in a build tree (its meson-uninstalled folder in
//! PKG_CONFIG_PATH).  Crates that link it get the folder as DEP_FLEXGUARD_LIB.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // docs.rs has no libflexguard, and links nothing.
    if std::env::var_os("DOCS_RS").is_some() {
        return;
    }
    let found = pkg_config::Config::new()
        .range_version("0.1".."1") // later ones keep the ABI (CHANGELOG.md)
        .probe("flexguard");
    match found {
        Ok(library) => {
            if let Some(folder) = library.link_paths.first() {
                println!("cargo:lib={}", folder.display());
                // This package's tests only; what others link is theirs to place.
                println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
            }
            let folders: Vec<_> =
                library.include_paths.iter().map(|p| p.display().to_string()).collect();
            println!("cargo:rustc-env=FLEXGUARD_INCLUDE={}", folders.join(":"));
        }
        Err(why) => {
            eprintln!(
                "flexguard-sys: pkg-config has no flexguard 0.1: it is in the package \
                 libflexguard-dev (Debian) or flexguard-devel (rpm); or name the folder of \
                 flexguard.pc in PKG_CONFIG_PATH (of a build tree: build/meson-uninstalled)\n{why}"
            );
            std::process::exit(1);
        }
    }
}
