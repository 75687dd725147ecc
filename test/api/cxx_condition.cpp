// SPDX-License-Identifier: MIT
// fg::condition_variable, and std::condition_variable_any with the mutexes of flexguard.hpp.
#include "api.hpp"

#include <condition_variable>

using std::chrono::steady_clock;
using std::chrono::system_clock;

template <class C, class M> static void time_limits()
{
	const auto never = [] { return false; };
	M m;
	C c;
	std::unique_lock<M> l(m);
	const auto begin = steady_clock::now();

	CHECK(!c.wait_for(l, 3ms, never));
	CHECK(steady_clock::now() - begin >= 3ms);
	CHECK(!c.wait_for(l, -1h, never));
	CHECK(!c.wait_until(l, system_clock::now() + 2ms, never));
	CHECK(!c.wait_until(l, steady_clock::now() - 1s, never));
	CHECK(!c.wait_until(l, fast_clock::now() + 2ms, never));
	CHECK(!c.wait_until(l, slow_clock::now() + 2ms, never));
	CHECK(c.wait_for(l, -1h, [] { return true; }));
	CHECK(c.wait_until(l, slow_clock::now(), [] { return true; }));
	CHECK(l.owns_lock());
}

// A timeout is one by the clock that was asked for.
template <class Clock> static void not_early()
{
	fg::mutex m;
	fg::condition_variable c;
	std::unique_lock<fg::mutex> l(m);
	const auto t = Clock::now() + 3ms;

	while (c.wait_until(l, t) == fg::cv_status::no_timeout)
		;
	CHECK(Clock::now() >= t);
}

template <class C, class M> static void turns()
{
	M m;
	C c;
	int turn = 0;

	in_threads(4, [&](int id) {
		for (int i = 0; i < 200; i++) {
			std::unique_lock<M> l(m);
			const auto mine = [&] { return turn % 4 == id; };

			switch (i % 4) {
			case 0: c.wait(l, mine); break;
			case 1: CHECK(c.wait_for(l, 60s, mine)); break;
			case 2: CHECK(c.wait_until(l, system_clock::now() + 60s, mine)); break;
			default: CHECK(c.wait_until(l, fast_clock::now() + 60s, mine));
			}
			turn++;
			c.notify_all();
		}
	});
	CHECK_EQ(turn, 800);
}

// Far limits do not overflow into the past.
static void far()
{
	fg::mutex m;
	fg::condition_variable c;
	bool go = false;
	std::atomic<int> waiting{0};
	std::vector<std::thread> t;

	for (int i = 0; i < 5; i++)
		t.emplace_back([&, i] {
			std::unique_lock<fg::mutex> l(m);
			const auto gone = [&] { return go; };

			waiting++;
			CHECK(i == 0 ? c.wait_for(l, std::chrono::hours::max(), gone) :
			      i == 1 ? c.wait_until(l, steady_clock::time_point::max(), gone) :
			      i == 2 ? c.wait_until(l, system_clock::time_point::max(), gone) :
			      i == 3 ? c.wait_until(l, fast_clock::time_point::max(), gone) :
				       c.wait_for(l, std::chrono::duration<double>(1e300), gone));
		});
	UNTIL(waiting.load() == 5);
	{
		std::unique_lock<fg::mutex> l(m);

		CHECK(!c.wait_for(l, std::chrono::hours::min(), [&] { return go; }));
		CHECK(!c.wait_until(l, steady_clock::time_point::min(), [&] { return go; }));
		CHECK(!c.wait_for(l, std::chrono::duration<double>(-1e300), [&] { return go; }));
	}
	{
		std::lock_guard<fg::mutex> g(m);
		go = true;
	}
	c.notify_all();
	for (auto &x : t)
		x.join();
}

// Each notification wakes one; the object may go when all have been notified.
static void one_each()
{
	for (int round = 0; round < 100; round++) {
		fg::mutex m;
		std::vector<std::thread> t;
		{
			fg::condition_variable c;
			int waiting = 0, tokens = 0;

			for (int i = 0; i < 4; i++)
				t.emplace_back([&] {
					std::unique_lock<fg::mutex> l(m);

					waiting++;
					c.wait(l, [&] { return tokens > 0; });
					tokens--;
					waiting--;
				});
			for (std::unique_lock<fg::mutex> l(m); waiting < 4; l.lock()) {
				l.unlock();
				sleep_us(20);
			}
			for (int i = 0; i < 4; i++) {
				std::lock_guard<fg::mutex> g(m);
				tokens++;
				c.notify_one();
			}
			for (std::unique_lock<fg::mutex> l(m); waiting; l.lock()) {
				l.unlock();
				sleep_us(20);
			}
		}
		for (auto &x : t)
			x.join();
	}
}

int main(int, char **argv)
{
	api_begin(argv[0], 60);
	time_limits<fg::condition_variable, fg::mutex>();
	time_limits<std::condition_variable_any, fg::mutex>();
	time_limits<std::condition_variable_any, fg::recursive_timed_mutex>();
	not_early<steady_clock>();
	not_early<system_clock>();
	not_early<fast_clock>();
	not_early<slow_clock>();
	turns<fg::condition_variable, fg::mutex>();
	turns<std::condition_variable_any, fg::timed_mutex>();
	turns<std::condition_variable_any, fg::recursive_mutex>();
	far();
	one_each();
	return 0;
}
