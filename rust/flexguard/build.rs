// SPDX-License-Identifier: MIT
//! The tests and examples of this package find the library where it was linked from.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_FLEXGUARD_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
