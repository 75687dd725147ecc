// SPDX-License-Identifier: MIT
// fg::shared_mutex and fg::shared_timed_mutex do what those of <shared_mutex> do.
#include "api.hpp"

#include <condition_variable>
#include <shared_mutex>

using std::chrono::steady_clock;
using std::chrono::system_clock;

template <class M> static bool can_write(M &m)
{
	return elsewhere([&] { return std::unique_lock<M>(m, std::try_to_lock).owns_lock(); });
}

template <class M> static bool can_read(M &m)
{
	return elsewhere([&] { return std::shared_lock<M>(m, std::try_to_lock).owns_lock(); });
}

template <class M> static void plain()
{
	M m;

	CHECK(can_write(m) && can_read(m));
	{
		std::shared_lock<M> l(m);

		CHECK(!can_write(m) && can_read(m));
		l.unlock();
		CHECK(can_write(m));
		CHECK(l.try_lock());
		std::shared_lock<M> moved(std::move(l));
		CHECK(!can_write(m) && can_read(m));
	}
	{
		std::lock_guard<M> g(m);

		CHECK(!can_write(m) && !can_read(m));
	}
	{
		M other;
		std::shared_lock<M> l(m, std::defer_lock);

		std::lock(l, other);
		CHECK(can_read(m) && !can_write(m) && !can_read(other));
		other.unlock();
	}
	CHECK(can_write(m) && can_read(m));
	m.lock();
	bool thrown = false;
	try {
		m.lock();
	} catch (const std::system_error &e) {
		thrown = e.code() == std::errc::resource_deadlock_would_occur;
	}
	CHECK(thrown);
	m.unlock();
}

template <class M> static void excludes()
{
	M m;
	volatile long a = 0, b = 0;

	in_threads(6, [&](int id) {
		for (int i = 0; i < 2000; i++) {
			if (id < 2) {
				std::unique_lock<M> l(m);

				a = a + 1;
				b = b + 1;
			} else {
				std::shared_lock<M> l(m);

				CHECK_EQ(a, b);
			}
		}
	});
	CHECK_EQ(a, 4000);
}

template <class Clock>
static void refused_until(fg::shared_timed_mutex &m, typename Clock::time_point t)
{
	CHECK(!m.try_lock_until(t));
	CHECK(Clock::now() >= t);
	CHECK(!m.try_lock_shared_until(t));
}

static void timed()
{
	fg::shared_timed_mutex m;

	m.lock();
	in_threads(1, [&](int) {
		const auto begin = steady_clock::now();

		CHECK(!m.try_lock_for(2ms));
		CHECK(!m.try_lock_shared_for(2ms));
		CHECK(steady_clock::now() - begin >= 4ms);
		CHECK(!m.try_lock_shared_for(std::chrono::hours::min()));
		refused_until<steady_clock>(m, steady_clock::now() + 2ms);
		refused_until<system_clock>(m, system_clock::now() + 2ms);
		refused_until<fast_clock>(m, fast_clock::now() + 2ms);
		refused_until<slow_clock>(m, slow_clock::now() + 2ms);
		refused_until<slow_clock>(m, slow_clock::now() - 2ms);
	});
	m.unlock();
	m.lock_shared();
	in_threads(1, [&](int) {
		CHECK(!m.try_lock_for(1ms));
		CHECK(m.try_lock_shared_for(-1h));
		m.unlock_shared();
		CHECK(m.try_lock_shared_for(std::chrono::hours::max()));
		m.unlock_shared();
		CHECK(m.try_lock_shared_until(system_clock::time_point::max()));
		m.unlock_shared();
		CHECK(m.try_lock_shared_until(slow_clock::now()));
		m.unlock_shared();
	});
	m.unlock_shared();
	for (int i = 0; i < 12; i++) {
		std::atomic<bool> there{false};

		m.lock();
		std::thread t([&] {
			there = true;
			if (i % 2) {
				CHECK(i % 4 == 1 ? m.try_lock_for(1h) :
						   m.try_lock_until(slow_clock::now() + 1h));
				m.unlock();
			} else {
				CHECK(i % 4 == 0 ? m.try_lock_shared_for(1h) :
						   m.try_lock_shared_until(fast_clock::now() + 1h));
				m.unlock_shared();
			}
		});
		UNTIL(there.load());
		if (i & 4)
			std::this_thread::sleep_for(1ms);
		m.unlock();
		t.join();
	}
}

// condition_variable_any with a shared lock: many may wait, each with its own.
static void waits_shared()
{
	fg::shared_mutex m;
	std::condition_variable_any c;
	bool go = false;
	std::atomic<int> waiting{0}, gone{0};
	std::vector<std::thread> t;

	for (int i = 0; i < 4; i++)
		t.emplace_back([&] {
			std::shared_lock<fg::shared_mutex> l(m);

			waiting++;
			c.wait(l, [&] { return go; });
			gone++;
		});
	UNTIL(waiting.load() == 4);
	{
		std::unique_lock<fg::shared_mutex> l(m);
		go = true;
	}
	c.notify_all();
	for (auto &x : t)
		x.join();
	CHECK_EQ(gone.load(), 4);
}

int main(int, char **argv)
{
	api_begin(argv[0], 60);
	plain<fg::shared_mutex>();
	plain<fg::shared_timed_mutex>();
	excludes<fg::shared_mutex>();
	excludes<fg::shared_timed_mutex>();
	timed();
	waits_shared();
	return 0;
}
