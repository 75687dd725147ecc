// SPDX-License-Identifier: MIT
//
// Accounts with a mutex each, transfers that lock two of them at once, and an
// auditor that waits until all is done.  Prints the money that there is in the end.
//
//   c++ -std=c++17 bank.cpp $(pkg-config --cflags --libs flexguard) -pthread
#include <flexguard.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

struct account {
	fg::mutex mutex;
	long money = 1000; // guarded by mutex
};

static void transfer(account &from, account &to, long amount)
{
	std::scoped_lock both(from.mutex, to.mutex);

	from.money -= amount;
	to.money += amount;
}

int main()
{
	constexpr std::size_t accounts = 10, tellers = 4, rounds = 20000;
	std::vector<account> bank(accounts);
	fg::mutex mutex;
	fg::condition_variable changed;
	std::size_t done = 0; // guarded by mutex
	std::vector<std::thread> threads;

	for (std::size_t id = 0; id < tellers; id++)
		threads.emplace_back([&, id] {
			for (std::size_t i = 0; i < rounds; i++) {
				const std::size_t from = (i + id) % accounts,
						  away = 1 + i % (accounts - 1);

				transfer(bank[from], bank[(from + away) % accounts], 1);
			}
			std::lock_guard guard(mutex);
			done++;
			changed.notify_one();
		});
	{
		std::unique_lock lock(mutex);

		while (!changed.wait_for(lock, std::chrono::seconds(1),
					 [&] { return done == tellers; }))
			std::fprintf(stderr, "%zu of %zu tellers are done\n", done, tellers);
	}
	for (auto &t : threads)
		t.join();

	long total = 0;
	for (auto &a : bank)
		total += a.money;
	std::printf("%ld\n", total);
	return total != 1000 * static_cast<long>(accounts);
}
