// SPDX-License-Identifier: MIT
//! The bindings are those of the header: a C program prints what it sees there, and the
//! preprocessor which names it has.
use flexguard_sys::*;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::mem::{align_of, size_of, size_of_val};
use std::path::PathBuf;
use std::process::Command;

macro_rules! layouts {
    ($($object:ident),*) => {
        &[$((stringify!($object), size_of::<$object>(), align_of::<$object>())),*]
    };
}

const LAYOUTS: &[(&str, usize, usize)] =
    layouts!(fg_mutex_t, fg_cond_t, fg_rwlock_t, fg_barrier_t, fg_once_t, fg_sem_t, fg_spin_t);

macro_rules! numbers {
    ($($name:ident),*) => {
        &[$((stringify!($name), $name)),*]
    };
}

const NUMBERS: &[(&str, i32)] = numbers!(
    FG_VERSION_MAJOR,
    FG_VERSION_MINOR,
    FG_VERSION_PATCH,
    FG_VERSION_NUMBER,
    FG_MUTEX_NORMAL,
    FG_MUTEX_RECURSIVE,
    FG_MUTEX_ERRORCHECK,
    FG_MUTEX_MOVABLE,
    FG_RWLOCK_DEFAULT,
    FG_RWLOCK_WRITERS_FIRST,
    FG_BARRIER_SERIAL
);

macro_rules! initialisers {
    ($($object:ident: $($init:expr),*;)*) => {
        [$($((stringify!($object), stringify!($init), hex::<$object>(&$init))),*),*]
    };
}

fn hex<T>(object: &T) -> String {
    let bytes = object as *const T as *const u8;
    // SAFETY: plain integers without padding.
    (0..size_of_val(object)).map(|i| format!("{:02x}", unsafe { *bytes.add(i) })).collect()
}

fn initialisers() -> impl IntoIterator<Item = (&'static str, &'static str, String)> {
    initialisers! {
        fg_mutex_t: FG_MUTEX_INIT, FG_RECURSIVE_MUTEX_INIT, FG_ERRORCHECK_MUTEX_INIT,
            FG_MOVABLE_MUTEX_INIT;
        fg_cond_t: FG_COND_INIT;
        fg_rwlock_t: FG_RWLOCK_INIT, FG_WRITERS_FIRST_RWLOCK_INIT;
        fg_once_t: FG_ONCE_INIT;
        fg_sem_t: FG_SEM_INIT(7);
        fg_spin_t: FG_SPIN_INIT;
    }
}

/// Prints a line for each constant and object, as `expected` does.
fn program() -> String {
    let mut c = String::from("#include <flexguard.h>\n#include <stdio.h>\nint main(void)\n{\n");
    for (name, _) in NUMBERS {
        writeln!(c, "\tprintf(\"{name} %d\\n\", {name});").unwrap();
    }
    for (name, _, _) in LAYOUTS {
        writeln!(c, "\tprintf(\"{name} %zu %zu\\n\", sizeof({name}), __alignof__({name}));")
            .unwrap();
    }
    for (object, init, _) in initialisers() {
        writeln!(c, "\t{{\n\t\tstatic const {object} x = {init};\n\t\tprintf(\"{init} \");")
            .unwrap();
        writeln!(c, "\t\tfor (size_t i = 0; i < sizeof(x); i++)").unwrap();
        writeln!(c, "\t\t\tprintf(\"%02x\", ((const unsigned char *)&x)[i]);").unwrap();
        writeln!(c, "\t\tputs(\"\");\n\t}}").unwrap();
    }
    c + "}\n"
}

fn expected() -> String {
    let mut lines = String::new();
    for (name, value) in NUMBERS {
        writeln!(lines, "{name} {value}").unwrap();
    }
    for (name, size, align) in LAYOUTS {
        writeln!(lines, "{name} {size} {align}").unwrap();
    }
    for (_, init, bytes) in initialisers() {
        writeln!(lines, "{init} {bytes}").unwrap();
    }
    lines
}

fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("flexguard-sys-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn compiler() -> Command {
    let mut compiler = Command::new("cc");
    for include in env!("FLEXGUARD_INCLUDE").split(':').filter(|f| !f.is_empty()) {
        compiler.arg("-I").arg(include);
    }
    compiler
}

#[test]
fn constants_and_layouts_are_the_headers() {
    let folder = folder("layout");
    let source = folder.join("layout.c");
    let binary = folder.join("layout");
    std::fs::write(&source, program()).unwrap();
    let status = compiler().arg(&source).arg("-o").arg(&binary).status();
    assert!(status.expect("a C compiler, `cc`").success());
    let printed = Command::new(&binary).output().unwrap().stdout;
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(String::from_utf8(printed).unwrap(), expected());
}

/// What begins as ours, without what only the header itself uses.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|n| n.starts_with("fg_") || n.starts_with("FG_"))
        .filter(|n| !n.ends_with('_') && *n != "FG_API")
        .collect()
}

#[test]
fn all_names_of_the_header_are_here() {
    let folder = folder("names");
    let source = folder.join("names.c");
    std::fs::write(&source, "#include <flexguard.h>\n").unwrap();
    // With the macros, without comments.
    let output = compiler().args(["-E", "-dD"]).arg(&source).output().expect("a C compiler, `cc`");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success());
    let header = String::from_utf8(output.stdout).unwrap();
    let bindings: String = include_str!("../src/lib.rs")
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(&names(&header) ^ &names(&bindings), BTreeSet::new());
    // Of the constants each is compared above.
    let mut constants = names(&header);
    constants.retain(|name| name.starts_with("FG_"));
    let compared: BTreeSet<&str> = initialisers()
        .into_iter()
        .map(|(_, init, _)| init.split('(').next().unwrap())
        .chain(NUMBERS.iter().map(|(name, _)| *name))
        .collect();
    assert_eq!(&constants ^ &compared, BTreeSet::new());
}

#[test]
fn the_library_has_this_abi() {
    assert!((FG_VERSION_NUMBER..10000).contains(&unsafe { fg_version() }));
}
