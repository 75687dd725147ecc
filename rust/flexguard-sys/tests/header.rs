// SPDX-License-Identifier: MIT
//! The bindings are those of the header: a C program prints what it sees there.
use flexguard_sys::*;
use std::fmt::Write as _;
use std::mem::{align_of, size_of};
use std::process::Command;

macro_rules! layouts {
    ($($object:ident),*) => {
        &[$((stringify!($object), size_of::<$object>(), align_of::<$object>())),*]
    };
}

const LAYOUTS: &[(&str, usize, usize)] =
    layouts!(fg_mutex_t, fg_cond_t, fg_rwlock_t, fg_barrier_t, fg_once_t, fg_sem_t, fg_spin_t);

const NUMBERS: &[(&str, i32)] = &[
    ("FG_MUTEX_NORMAL", FG_MUTEX_NORMAL),
    ("FG_MUTEX_RECURSIVE", FG_MUTEX_RECURSIVE),
    ("FG_MUTEX_ERRORCHECK", FG_MUTEX_ERRORCHECK),
    ("FG_MUTEX_MOVABLE", FG_MUTEX_MOVABLE),
    ("FG_RWLOCK_DEFAULT", FG_RWLOCK_DEFAULT),
    ("FG_RWLOCK_WRITERS_FIRST", FG_RWLOCK_WRITERS_FIRST),
    ("FG_BARRIER_SERIAL", FG_BARRIER_SERIAL),
];

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
    lines
}

#[test]
fn constants_and_layouts_are_the_headers() {
    let folder = std::env::temp_dir().join(format!("flexguard-sys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("layout.c");
    let binary = folder.join("layout");
    std::fs::write(&source, program()).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg(&source).arg("-o").arg(&binary);
    for include in env!("FLEXGUARD_INCLUDE").split(':').filter(|f| !f.is_empty()) {
        compiler.arg("-I").arg(include);
    }
    assert!(compiler.status().expect("a C compiler, `cc`").success());
    let printed = Command::new(&binary).output().unwrap().stdout;
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(String::from_utf8(printed).unwrap(), expected());
}

#[test]
fn the_library_is_of_this_minor_version() {
    assert_eq!(unsafe { fg_version() } / 100, 1);
}
