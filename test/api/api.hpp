// SPDX-License-Identifier: MIT
// What the tests of flexguard.hpp share.
#ifndef TEST_API_HPP
#define TEST_API_HPP

#include <flexguard.hpp>

extern "C" {
#include "api.h"
}

#include "../tools/threads.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

// The result of f() in a thread of its own.
template <class F> auto elsewhere(F f)
{
	decltype(f()) r{};

	std::thread([&] { r = f(); }).join();
	return r;
}

// A clock that the kernel does not wait on: steady_clock at twice the speed, and coarse.
struct fast_clock {
	using rep = long;
	using period = std::micro;
	using duration = std::chrono::duration<rep, period>;
	using time_point = std::chrono::time_point<fast_clock>;
	static constexpr bool is_steady = true;
	static time_point now()
	{
		const auto t = std::chrono::steady_clock::now().time_since_epoch();

		return time_point(std::chrono::duration_cast<duration>(2 * t));
	}
};

// The same at half the speed: our clock always says "time" too early.
struct slow_clock {
	using rep = double;
	using period = std::milli;
	using duration = std::chrono::duration<rep, period>;
	using time_point = std::chrono::time_point<slow_clock>;
	static constexpr bool is_steady = true;
	static time_point now()
	{
		return time_point(duration(std::chrono::steady_clock::now().time_since_epoch()) /
				  2);
	}
};

#endif
