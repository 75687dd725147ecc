// SPDX-License-Identifier: MIT
// The C++ standard library's mutexes and condition variables, above all their timed waits.
#include "../tools/check.h"
#include "../tools/threads.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

template <class M> static void timed()
{
	M m;

	CHECK(m.try_lock());
	in_threads(1, [&](int) {
		auto begin = std::chrono::steady_clock::now();

		CHECK(!m.try_lock());
		CHECK(!m.try_lock_for(2ms));
		CHECK(std::chrono::steady_clock::now() - begin >= 2ms);
		CHECK(!m.try_lock_until(std::chrono::system_clock::now() + 1ms));
		CHECK(!m.try_lock_until(std::chrono::steady_clock::now() - 1s));
	});
	m.unlock();
	in_threads(1, [&](int) {
		CHECK(m.try_lock_for(10s));
		m.unlock();
		CHECK(m.try_lock_until(std::chrono::system_clock::now() + 10s));
		m.unlock();
	});
}

template <class C, class M> static void conditions()
{
	M m;
	C c;
	int turn = 0;
	std::unique_lock<M> l(m);

	CHECK(!c.wait_for(l, 2ms, [] { return false; }));
	CHECK(!c.wait_until(l, std::chrono::system_clock::now() + 1ms, [] { return false; }));
	CHECK(!c.wait_until(l, std::chrono::steady_clock::now() - 1s, [] { return false; }));
	l.unlock();
	in_threads(4, [&](int id) {
		for (int i = 0; i < 300; i++) {
			std::unique_lock<M> g(m);

			if (id & 1)
				CHECK(c.wait_for(g, 60s, [&] { return turn % 4 == id; }));
			else
				c.wait(g, [&] { return turn % 4 == id; });
			turn++;
			c.notify_all();
		}
	});
	CHECK_EQ(turn, 1200);
}

struct at_thread_end {
	std::mutex *m = nullptr;
	~at_thread_end()
	{
		if (m)
			std::lock_guard<std::mutex> g(*m);
	}
};

int main(int, char **argv)
{
	static thread_local at_thread_end local;
	std::mutex m;

	check_begin(argv[0], 20);
	exclusion<std::mutex>();
	exclusion<std::recursive_mutex>();
	exclusion<std::timed_mutex>();
	exclusion<std::shared_mutex>();
	timed<std::timed_mutex>();
	timed<std::recursive_timed_mutex>();
	timed<std::shared_timed_mutex>();
	conditions<std::condition_variable, std::mutex>();
	conditions<std::condition_variable_any, std::recursive_mutex>();
	in_threads(8, [&](int) { local.m = &m; });
	{
		std::mutex a, b;
		long count = 0;

		in_threads(4, [&](int id) {
			for (int i = 0; i < 2000; i++) {
				if (id & 1) {
					std::scoped_lock g(a, b);
					count++;
				} else {
					std::scoped_lock g(b, a);
					count++;
				}
			}
		});
		CHECK_EQ(count, 8000);
	}
	return 0;
}
