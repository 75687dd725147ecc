// SPDX-License-Identifier: MIT
// fg::barrier, fg::counting_semaphore and fg::call_once.
#include "api.hpp"

#include <memory>
#include <string>

static void barriers()
{
	fg::barrier b(4);
	std::atomic<int> arrived{0}, serial{0};

	in_threads(4, [&](int) {
		for (int i = 1; i <= 200; i++) {
			arrived++;
			serial += b.arrive_and_wait();
			CHECK(arrived >= 4 * i);
			b.arrive_and_wait();
		}
	});
	CHECK_EQ(serial.load(), 200);
	bool thrown = false;
	try {
		fg::barrier none(0);
	} catch (const std::system_error &e) {
		thrown = e.code() == std::errc::invalid_argument;
	}
	CHECK(thrown);
}

static void semaphores()
{
	static fg::binary_semaphore ping(1), pong(0);
	fg::counting_semaphore<> s(0);
	int turn = 0;

	CHECK(!s.try_acquire());
	CHECK(!s.try_acquire_for(1ms));
	CHECK(!s.try_acquire_until(slow_clock::now() + 1ms));
	s.release(3);
	CHECK(s.try_acquire());
	CHECK(s.try_acquire_for(std::chrono::hours::max()));
	CHECK(s.try_acquire_until(std::chrono::system_clock::time_point::max()));
	CHECK(!s.try_acquire());

	fg::counting_semaphore<> full(s.max() - 1);
	bool thrown = false;

	try {
		full.release(2);
	} catch (const std::system_error &e) {
		thrown = e.code() == std::errc::value_too_large;
	}
	CHECK(thrown);
	full.release(); // not there yet: nothing was released
	in_threads(2, [&](int id) {
		for (int i = 0; i < 500; i++) {
			(id ? pong : ping).acquire();
			CHECK_EQ(turn++ % 2, id);
			(id ? ping : pong).release();
		}
	});
	CHECK_EQ(turn, 1000);
}

struct counter {
	int n = 0;
	void add(int k)
	{
		n += k;
	}
};

static void once()
{
	static fg::once_flag of_static_storage;
	fg::once_flag flag, inner, methods;
	std::atomic<int> calls{0};
	counter c;

	in_threads(8, [&](int) {
		fg::call_once(
		    flag,
		    [&](int n, std::unique_ptr<std::string> s) {
			    // One inside another.
			    fg::call_once(inner, [&] { calls += 10; });
			    calls += n + static_cast<int>(s->size());
		    },
		    1, std::make_unique<std::string>("four"));
		CHECK_EQ(calls.load(), 15);
	});
	fg::call_once(methods, &counter::add, c, 3);
	fg::call_once(methods, &counter::add, &c, 3);
	CHECK_EQ(c.n, 3);
	fg::call_once(of_static_storage, [&] { c.n = 7; });
	CHECK_EQ(c.n, 7);
}

// The exception comes to the caller, and the flag is not set; a waiter tries in its place.
static void exceptional()
{
	fg::once_flag flag;
	std::atomic<int> thrown{0}, caught{0}, done{0};

	in_threads(6, [&](int) {
		try {
			fg::call_once(flag, [&] {
				if (thrown < 3) {
					thrown++;
					throw std::string("not yet");
				}
				done++;
			});
		} catch (const std::string &s) {
			CHECK(s == "not yet");
			caught++;
		}
	});
	CHECK_EQ(thrown.load(), 3);
	CHECK_EQ(caught.load(), 3);
	CHECK_EQ(done.load(), 1);
}

int main(int, char **argv)
{
	api_begin(argv[0], 60);
	barriers();
	semaphores();
	once();
	for (int i = 0; i < 50; i++)
		exceptional();
	return 0;
}
