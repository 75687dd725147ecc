// SPDX-License-Identifier: MIT
//! A bounded queue: `cargo run --example queue`.
use flexguard::{Condvar, Mutex};
use std::collections::VecDeque;

struct Queue<T> {
    items: Mutex<VecDeque<T>>,
    not_empty: Condvar,
    not_full: Condvar,
    most: usize,
}

impl<T> Queue<T> {
    fn new(most: usize) -> Queue<T> {
        Queue {
            items: Mutex::new(VecDeque::new()),
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
            most,
        }
    }

    fn put(&self, item: T) {
        let mut items = self.items.lock();
        self.not_full.wait_while(&mut items, |items| items.len() == self.most);
        items.push_back(item);
        self.not_empty.notify_one();
    }

    fn take(&self) -> T {
        let mut items = self.items.lock();
        self.not_empty.wait_while(&mut items, |items| items.is_empty());
        self.not_full.notify_one();
        items.pop_front().expect("not empty")
    }
}

fn main() {
    const ITEMS: u64 = 100_000;
    let queue = Queue::new(16);
    let sum = std::thread::scope(|s| {
        s.spawn(|| (1..=ITEMS).for_each(|i| queue.put(i)));
        s.spawn(|| (0..ITEMS).map(|_| queue.take()).sum::<u64>()).join().unwrap()
    });
    assert_eq!(sum, ITEMS * (ITEMS + 1) / 2);
    println!("{ITEMS} items passed, their sum is {sum}");
}
