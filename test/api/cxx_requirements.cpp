// SPDX-License-Identifier: MIT
// The named requirements of the C++ standard ([thread.req.lockable], [thread.mutex.requirements],
// [thread.condition]): expressions, types, constructors, exception specifications.
#include "api.hpp"

#include <condition_variable>
#include <shared_mutex>
#include <type_traits>

template <class...> using void_t = void;
template <class T> T &lvalue() noexcept;

template <class M> constexpr bool is_basic_lockable()
{
	static_assert(std::is_void_v<decltype(lvalue<M>().lock())>);
	static_assert(std::is_void_v<decltype(lvalue<M>().unlock())>);
	return noexcept(lvalue<M>().unlock());
}

template <class M> constexpr bool is_lockable()
{
	static_assert(std::is_same_v<decltype(lvalue<M>().try_lock()), bool>);
	return is_basic_lockable<M>();
}

template <class M> constexpr bool is_timed_lockable()
{
	static_assert(std::is_same_v<decltype(lvalue<M>().try_lock_for(1ms)), bool>);
	static_assert(std::is_same_v<decltype(lvalue<M>().try_lock_for(1.5h)), bool>);
	static_assert(std::is_same_v<
		      decltype(lvalue<M>().try_lock_until(std::chrono::steady_clock::now())),
		      bool>);
	static_assert(std::is_same_v<
		      decltype(lvalue<M>().try_lock_until(std::chrono::system_clock::now())),
		      bool>);
	static_assert(std::is_same_v<decltype(lvalue<M>().try_lock_until(fast_clock::now())),
				     bool>);
	return is_lockable<M>();
}

template <class M, class = void> struct has_timed : std::false_type {
};
template <class M>
struct has_timed<M, void_t<decltype(lvalue<M>().try_lock_for(1ms))>> : std::true_type {
};

template <class M> constexpr bool is_a_mutex()
{
	static_assert(std::is_default_constructible_v<M> &&
		      std::is_nothrow_default_constructible_v<M>);
	static_assert(std::is_standard_layout_v<M>);
	static_assert(!std::is_copy_constructible_v<M> && !std::is_copy_assignable_v<M>);
	static_assert(!std::is_move_constructible_v<M> && !std::is_move_assignable_v<M>);
	static_assert(noexcept(lvalue<M>().try_lock()));
	static_assert(std::is_same_v<decltype(lvalue<M>().native_handle()),
				     typename M::native_handle_type>);
	return is_lockable<M>();
}

template <class M> constexpr bool is_shared_lockable()
{
	static_assert(std::is_void_v<decltype(lvalue<M>().lock_shared())>);
	static_assert(std::is_same_v<decltype(lvalue<M>().try_lock_shared()), bool>);
	static_assert(std::is_void_v<decltype(lvalue<M>().unlock_shared())>);
	return noexcept(lvalue<M>().try_lock_shared()) && noexcept(lvalue<M>().unlock_shared());
}

template <class M> constexpr bool is_shared_timed_lockable()
{
	static_assert(std::is_same_v<decltype(lvalue<M>().try_lock_shared_for(1.5h)), bool>);
	static_assert(std::is_same_v<decltype(lvalue<M>().try_lock_shared_until(fast_clock::now())),
				     bool>);
	static_assert(std::is_same_v<
		      decltype(lvalue<M>().try_lock_shared_until(std::chrono::system_clock::now())),
		      bool>);
	return is_shared_lockable<M>() && is_timed_lockable<M>();
}

static_assert(is_a_mutex<fg::shared_mutex>() && is_shared_lockable<fg::shared_mutex>());
static_assert(!has_timed<fg::shared_mutex>::value);
static_assert(is_a_mutex<fg::shared_timed_mutex>() &&
	      is_shared_timed_lockable<fg::shared_timed_mutex>());
static_assert(is_a_mutex<fg::mutex>() && !has_timed<fg::mutex>::value);
static_assert(is_a_mutex<fg::recursive_mutex>() && !has_timed<fg::recursive_mutex>::value);
static_assert(is_a_mutex<fg::timed_mutex>() && is_timed_lockable<fg::timed_mutex>());
static_assert(is_a_mutex<fg::recursive_timed_mutex>() &&
	      is_timed_lockable<fg::recursive_timed_mutex>());
static_assert(std::is_trivially_destructible_v<fg::mutex>);

using condition = fg::condition_variable;
static_assert(std::is_nothrow_default_constructible_v<condition> &&
	      std::is_standard_layout_v<condition>);
static_assert(!std::is_copy_constructible_v<condition> && !std::is_copy_assignable_v<condition>);
static_assert(noexcept(lvalue<condition>().notify_one()) &&
	      noexcept(lvalue<condition>().notify_all()));
static_assert(std::is_nothrow_default_constructible_v<fg::once_flag> &&
	      !std::is_copy_constructible_v<fg::once_flag>);
static_assert(!std::is_copy_constructible_v<fg::barrier> &&
	      !std::is_copy_assignable_v<fg::barrier>);
static_assert(std::is_same_v<fg::cv_status, std::cv_status>);

// Initialised before any code runs, like their namesakes.
#if __cplusplus >= 202002L
#define STATIC constinit
#else
#define STATIC
#endif
STATIC fg::mutex a_mutex;
STATIC fg::timed_mutex a_timed_mutex;
STATIC fg::recursive_mutex a_recursive_mutex;
STATIC fg::recursive_timed_mutex a_recursive_timed_mutex;
STATIC fg::shared_mutex a_shared_mutex;
STATIC fg::shared_timed_mutex a_shared_timed_mutex;
STATIC fg::once_flag a_flag;
STATIC fg::condition_variable a_condition;

template <class M> static void locks(M &m)
{
	{
		std::lock_guard<M> g(m);
	}
	{
		std::unique_lock<M> l(m, std::defer_lock);

		CHECK(l.try_lock());
	}
	{
		M other;
		std::scoped_lock g(m, other);
	}
	M other;
	std::lock(m, other);
	m.unlock();
	CHECK_EQ(std::try_lock(m, other), 1); // the second is locked
	CHECK(elsewhere([&] {
		if (!m.try_lock())
			return false;
		m.unlock();
		return true;
	}));
	other.unlock();
}

int main(int, char **argv)
{
	api_begin(argv[0], 20);
	locks(a_mutex);
	locks(a_timed_mutex);
	locks(a_shared_mutex);
	locks(a_shared_timed_mutex);
	{
		// A recursive one does not refuse its owner.
		std::scoped_lock g(a_recursive_mutex, a_recursive_timed_mutex);
		std::scoped_lock again(a_recursive_mutex, a_recursive_timed_mutex);
	}
	a_condition.notify_all();
	fg::call_once(a_flag, [] {});
	CHECK_EQ(fg_mutex_trylock(a_mutex.native_handle()), 0);
	CHECK(!a_mutex.try_lock());
	CHECK_EQ(fg_mutex_unlock(a_mutex.native_handle()), 0);
	CHECK_EQ(fg_cond_signal(a_condition.native_handle()), 0);
	return 0;
}
