// SPDX-License-Identifier: MIT
//! std's, parking_lot's and FlexGuard's mutex in the loop of the microbenchmarks: so long inside,
//! so long outside; sections a millisecond, interleaved rounds, medians and what they lie between.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: flexguard-rust-bench [--threads 1,2,...] [--inside US,...] \
                     [--outside US] [--seconds S] [--rounds N] [--json]

The critical sections a millisecond that threads get from std's, parking_lot's and FlexGuard's
mutex: the median of the rounds and (lowest..highest).

  --threads N,...  threads (1,2,4,8,32)
  --inside US,...  length of a section in microseconds (0,1,5)
  --outside US     between two sections (as long as inside)
  --seconds S      of one run (0.3)
  --rounds N       runs of each, in turn (5)
  --json           a line of JSON for each run instead of the table";

struct Options {
    threads: Vec<usize>,
    inside_us: Vec<f64>,
    outside_us: Option<f64>,
    seconds: f64,
    rounds: usize,
    json: bool,
}

/// A kind of mutex, of a count.
trait Lock: Sync {
    fn new() -> Self;
    fn section(&self, inside: impl FnOnce(&mut u64));
}

impl Lock for std::sync::Mutex<u64> {
    fn new() -> Self {
        std::sync::Mutex::new(0)
    }
    fn section(&self, inside: impl FnOnce(&mut u64)) {
        inside(&mut self.lock().expect("nobody panics"));
    }
}

impl Lock for parking_lot::Mutex<u64> {
    fn new() -> Self {
        parking_lot::Mutex::new(0)
    }
    fn section(&self, inside: impl FnOnce(&mut u64)) {
        inside(&mut self.lock());
    }
}

impl Lock for flexguard::Mutex<u64> {
    fn new() -> Self {
        flexguard::Mutex::new(0)
    }
    fn section(&self, inside: impl FnOnce(&mut u64)) {
        inside(&mut self.lock());
    }
}

/// Threads, units of work inside and outside, seconds; sections a millisecond.
type Run = fn(usize, u64, u64, f64) -> f64;

const LOCKS: [(&str, Run); 3] = [
    ("std", run::<std::sync::Mutex<u64>>),
    ("parking_lot", run::<parking_lot::Mutex<u64>>),
    ("flexguard", run::<flexguard::Mutex<u64>>),
];

/// Work that the compiler cannot leave out.
fn work(units: u64) {
    for i in 0..units {
        // SAFETY: a local; black_box came with a later Rust.
        unsafe { std::ptr::read_volatile(&i) };
    }
}

/// Units of work in a microsecond, when nothing else runs: the best of some tries.
fn units_per_us() -> f64 {
    const UNITS: u64 = 2_000_000;
    let try_once = || {
        let begun = Instant::now();
        work(UNITS);
        UNITS as f64 / begun.elapsed().as_secs_f64() / 1e6
    };
    (0..7).map(|_| try_once()).fold(0.0, f64::max)
}

fn run<L: Lock>(threads: usize, inside: u64, outside: u64, seconds: f64) -> f64 {
    let lock = L::new();
    let end = AtomicBool::new(false);
    let start = std::sync::Barrier::new(threads + 1);
    let (sections, elapsed) = std::thread::scope(|s| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                s.spawn(|| {
                    let mut sections = 0u64;
                    start.wait();
                    while !end.load(Ordering::Relaxed) {
                        lock.section(|count| {
                            *count += 1;
                            work(inside);
                        });
                        sections += 1;
                        work(outside);
                    }
                    sections
                })
            })
            .collect();
        start.wait();
        let begun = Instant::now();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        end.store(true, Ordering::Relaxed);
        let elapsed = begun.elapsed();
        (running.into_iter().map(|t| t.join().expect("no panic")).sum::<u64>(), elapsed)
    });
    let mut counted = 0;
    lock.section(|count| counted = *count);
    assert_eq!(counted, sections, "a section was lost: the lock does not exclude");
    sections as f64 / elapsed.as_secs_f64() / 1e3
}

fn numbers<T: std::str::FromStr>(option: &str, text: &str) -> Vec<T> {
    let parse = |word: &str| match word.parse() {
        Ok(number) => number,
        Err(_) => fail(&format!("{option}: '{word}' is no number")),
    };
    text.split(',').map(parse).collect()
}

fn fail(why: &str) -> ! {
    eprintln!("flexguard-rust-bench: {why}; see --help");
    std::process::exit(125)
}

fn options() -> Options {
    let mut o = Options {
        threads: vec![1, 2, 4, 8, 32],
        inside_us: vec![0.0, 1.0, 5.0],
        outside_us: None,
        seconds: 0.3,
        rounds: 5,
        json: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| fail(&format!("{word}: give a value")));
        match word.as_str() {
            "--threads" => o.threads = numbers(&word, &value()),
            "--inside" => o.inside_us = numbers(&word, &value()),
            "--outside" => o.outside_us = numbers(&word, &value()).pop(),
            "--seconds" => o.seconds = numbers(&word, &value())[0],
            "--rounds" => o.rounds = numbers(&word, &value())[0],
            "--json" => o.json = true,
            "--help" | "-h" => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            _ => fail(&format!("'{word}' is no option")),
        }
    }
    let good = o.rounds > 0 && o.seconds > 0.0 && o.seconds < 3600.0;
    if !good || o.threads.contains(&0) {
        fail("threads, seconds and rounds must be above 0");
    }
    o
}

/// Median, lowest and highest.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn main() {
    let o = options();
    let per_us = units_per_us();
    for &inside_us in &o.inside_us {
        let outside_us = o.outside_us.unwrap_or(inside_us);
        let (inside, outside) = ((inside_us * per_us) as u64, (outside_us * per_us) as u64);
        if !o.json {
            println!("{inside_us} us inside, {outside_us} us outside: sections a ms");
            print!("{:>8}", "threads");
            LOCKS.iter().for_each(|(name, _)| print!("{name:>28}"));
            println!("{:>16}", "flexguard/best");
        }
        for &threads in &o.threads {
            let mut values = vec![Vec::new(); LOCKS.len()];
            for round in 0..o.rounds {
                for (which, (name, run)) in LOCKS.iter().enumerate() {
                    let per_ms = run(threads, inside, outside, o.seconds);
                    values[which].push(per_ms);
                    if o.json {
                        println!(
                            "{{\"lock\":\"{name}\",\"threads\":{threads},\
                             \"inside_us\":{inside_us},\"outside_us\":{outside_us},\
                             \"round\":{round},\"per_ms\":{per_ms:.3}}}"
                        );
                    }
                }
            }
            if o.json {
                continue;
            }
            let row: Vec<_> = values.into_iter().map(spread).collect();
            print!("{threads:>8}");
            for (median, low, high) in &row {
                print!("{:>28}", format!("{median:.0} ({low:.0}..{high:.0})"));
            }
            let best = row[..2].iter().map(|r| r.0).fold(0.0, f64::max);
            println!("{:>16.2}", row[2].0 / best);
        }
    }
}
