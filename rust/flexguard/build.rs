// SPDX-License-Identifier: MIT
//! The tests and examples of this package find the library where it was linked from; and whether
//! ThreadSanitizer is there to be told of (src/tsan.rs).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_SANITIZE").map_or(false, |s| s.split(',').any(|s| s == "thread")) {
        println!("cargo:rustc-cfg=flexguard_tsan");
    }
    if let Ok(folder) = std::env::var("DEP_FLEXGUARD_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
