// SPDX-License-Identifier: MIT
// Threads of the C++ tests.  After the CHECK_EQ of the test that includes this.
#ifndef TOOLS_THREADS_HPP
#define TOOLS_THREADS_HPP

#include <mutex>
#include <thread>
#include <vector>

template <class F> void in_threads(int n, F f)
{
	std::vector<std::thread> t;

	for (int i = 0; i < n; i++)
		t.emplace_back(f, i);
	for (auto &x : t)
		x.join();
}

template <class M> void exclusion()
{
	M m;
	long count = 0;

	in_threads(4, [&](int) {
		for (int i = 0; i < 5000; i++) {
			std::lock_guard<M> g(m);
			*(volatile long *)&count = count + 1;
		}
	});
	CHECK_EQ(count, 20000);
}

#endif
