// SPDX-License-Identifier: MIT
// The mutexes of flexguard.hpp do what those of <mutex> do: exclusion, ownership, time limits on
// any clock.
#include "api.hpp"

template <class M> static bool is_free(M &m)
{
	return elsewhere([&] {
		const bool got = m.try_lock();

		if (got)
			m.unlock();
		return got;
	});
}

template <class M> static void plain()
{
	M m;

	exclusion<M>();
	m.lock();
	CHECK(!is_free(m));
	m.unlock();
	CHECK(is_free(m));
	CHECK(m.try_lock());
	CHECK(!is_free(m));
	m.unlock();
	{
		std::unique_lock<M> l(m);

		CHECK(!is_free(m));
		l.unlock();
		CHECK(is_free(m));
		CHECK(l.try_lock());
		CHECK(!is_free(m));
		std::unique_lock<M> moved(std::move(l));
		CHECK(!l && moved && !is_free(m));
	}
	CHECK(is_free(m));
	try {
		std::scoped_lock<M> g(m);
		throw 1;
	} catch (int) {
	}
	CHECK(is_free(m));
}

template <class M> static void recursive()
{
	M m;

	for (int i = 0; i < 5; i++) {
		m.lock();
		CHECK(m.try_lock());
	}
	for (int i = 0; i < 10; i++) {
		CHECK(!is_free(m));
		m.unlock();
	}
	CHECK(is_free(m));
}

// Never early, by the clock that was asked for.
template <class Clock, class M> static void refused_until(M &m, typename Clock::time_point t)
{
	CHECK(!m.try_lock_until(t));
	CHECK(Clock::now() >= t);
}

using std::chrono::steady_clock;
using std::chrono::system_clock;

// What is too far in the units of the clock, and what is too many thirds of a nanosecond.
using fast_hours = std::chrono::time_point<fast_clock, std::chrono::hours>;
constexpr std::chrono::duration<long, std::ratio<1, 60>> a_century(100 * 366 * 86400L * 60);

// What it is now is too many picoseconds for 64 bits.
struct late_clock {
	using duration = std::chrono::microseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<late_clock>;
	static constexpr bool is_steady = false;

	static time_point now()
	{
		return time_point(std::chrono::seconds(1800000000));
	}
};
using late_picoseconds =
    std::chrono::time_point<late_clock, std::chrono::duration<long, std::pico>>;

template <class M> static void timed_of_a_held_one()
{
	M m;

	m.lock();
	in_threads(1, [&](int) {
		const auto begin = steady_clock::now();

		CHECK(!m.try_lock_for(3ms));
		CHECK(steady_clock::now() - begin >= 3ms);
		CHECK(!m.try_lock_for(1.5ms));
		CHECK(!m.try_lock_for(0s));
		CHECK(!m.try_lock_for(-1h));
		CHECK(!m.try_lock_for(std::chrono::hours::min()));
		refused_until<steady_clock>(m, steady_clock::now() + 2ms);
		refused_until<steady_clock>(m, steady_clock::now() - 1h);
		refused_until<steady_clock>(m, steady_clock::time_point::min());
		refused_until<system_clock>(m, system_clock::now() + 2ms);
		refused_until<system_clock>(m, system_clock::time_point());
		refused_until<fast_clock>(m, fast_clock::now() + 2ms);
		refused_until<fast_clock>(m, fast_clock::time_point::min());
		refused_until<slow_clock>(m, slow_clock::now() + 2ms);
		refused_until<slow_clock>(m, slow_clock::now() - 2ms);
		CHECK(!m.try_lock_until(late_picoseconds()));
	});
	m.unlock();
}

// It is got however far the limit lies, or how long it is over.
template <class M> static void timed_of_a_free_one()
{
	M m;

	in_threads(1, [&](int) {
		const auto got = [&](bool yes) {
			CHECK(yes);
			m.unlock();
		};

		got(m.try_lock_for(10s));
		got(m.try_lock_for(-10s));
		got(m.try_lock_for(std::chrono::hours::max()));
		got(m.try_lock_for(std::chrono::duration<double>(1e300)));
		got(m.try_lock_until(steady_clock::time_point::max()));
		got(m.try_lock_until(system_clock::time_point::max()));
		got(m.try_lock_until(std::chrono::time_point<system_clock,
							     std::chrono::hours>::max()));
		got(m.try_lock_until(steady_clock::time_point()));
		got(m.try_lock_until(fast_clock::now() + 10s));
		got(m.try_lock_until(slow_clock::now()));
	});
}

// Held, and then given: waiting with a far limit ends with the unlock.
template <class M> static void timed_until_it_is_given()
{
	M m;

	for (int i = 0; i < 24; i++) {
		std::atomic<bool> there{false};

		m.lock();
		std::thread t([&] {
			there = true;
			CHECK(i % 6 == 0 ? m.try_lock_for(std::chrono::hours::max()) :
			      i % 6 == 1 ? m.try_lock_until(system_clock::time_point::max()) :
			      i % 6 == 2 ? m.try_lock_until(fast_clock::now() + 1h) :
			      i % 6 == 3 ? m.try_lock_for(a_century) :
			      i % 6 == 4 ? m.try_lock_until(fast_hours::max()) :
					   m.try_lock_until(slow_clock::now() + 1h));
			m.unlock();
		});
		UNTIL(there.load());
		if (i & 4)
			std::this_thread::sleep_for(1ms);
		m.unlock();
		t.join();
	}
}

template <class M> static void timed()
{
	timed_of_a_held_one<M>();
	timed_of_a_free_one<M>();
	timed_until_it_is_given<M>();
}

// Many mutexes at once, in any order, without deadlock.
static void several()
{
	fg::mutex a;
	fg::timed_mutex b;
	std::mutex c;
	fg::recursive_mutex d;
	long count = 0;

	in_threads(4, [&](int id) {
		for (int i = 0; i < 1000; i++) {
			if (id & 1) {
				std::scoped_lock g(a, b, c, d);
				count++;
			} else {
				std::unique_lock<fg::mutex> la(a, std::defer_lock);

				std::lock(d, c, b, la);
				std::lock_guard<fg::recursive_mutex> gd(d, std::adopt_lock);
				std::lock_guard<std::mutex> gc(c, std::adopt_lock);
				std::lock_guard<fg::timed_mutex> gb(b, std::adopt_lock);
				count++;
			}
		}
	});
	CHECK_EQ(count, 4000);
}

static void errors()
{
	fg::mutex m;
	std::unique_lock<fg::mutex> l(m);
	bool thrown = false;

	try {
		l.lock();
	} catch (const std::system_error &e) {
		thrown = e.code() == std::errc::resource_deadlock_would_occur;
	}
	CHECK(thrown);
	// What fg_mutex_lock refuses is thrown as what it is.
	fg::mutex errorcheck;
	CHECK_EQ(fg_mutex_init(errorcheck.native_handle(), FG_MUTEX_ERRORCHECK), 0);
	errorcheck.lock();
	thrown = false;
	try {
		errorcheck.lock();
	} catch (const std::system_error &e) {
		thrown = e.code() == std::error_code(EDEADLK, std::generic_category());
	}
	CHECK(thrown);
	errorcheck.unlock();
}

int main(int, char **argv)
{
	api_begin(argv[0], 60);
	plain<fg::mutex>();
	plain<fg::timed_mutex>();
	plain<fg::recursive_mutex>();
	plain<fg::recursive_timed_mutex>();
	recursive<fg::recursive_mutex>();
	recursive<fg::recursive_timed_mutex>();
	timed<fg::timed_mutex>();
	timed<fg::recursive_timed_mutex>();
	several();
	errors();
	return 0;
}
