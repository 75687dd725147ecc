// SPDX-License-Identifier: MIT
//
// FlexGuard for C++17: the classes of <mutex>, <shared_mutex> and
// <condition_variable> on FlexGuard's locks, with their names in namespace fg.
// They work with std::lock_guard, unique_lock, shared_lock, scoped_lock,
// std::lock and std::condition_variable_any.  Header only; link with -lflexguard.
//
// What differs from the standard library: fg::mutex may be unlocked by another
// thread, and none of the mutexes needs its destructor to run.  flexguard.h says
// what each function does.  In one file, as programs include it.
#ifndef FLEXGUARD_HPP
#define FLEXGUARD_HPP

#if __cplusplus < 201703L
#error "flexguard.hpp needs C++17 or later: -std=c++17 (flexguard.h does with less)"
#endif

#include <flexguard.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <system_error>
#include <type_traits>
#include <utility>

namespace fg
{

using std::cv_status;

namespace detail
{

inline void check(int error)
{
	if (!error)
		return;
#if defined(__cpp_exceptions)
	throw std::system_error(error, std::generic_category());
#else
	std::abort(); // as libstdc++'s mutexes without exceptions
#endif
}

struct deadline {
	clockid_t clock;
	timespec at;
};

inline constexpr double farthest = 4e9; // s: beyond all of them, and far below any overflow

// With the seconds apart: a long time may be too many of the smaller units, whatever its own are.
inline deadline whole_seconds(clockid_t clock, std::chrono::seconds s, std::chrono::nanoseconds ns)
{
	s += std::chrono::duration_cast<std::chrono::seconds>(ns);
	ns %= std::chrono::seconds(1);
	return {clock, {static_cast<time_t>(s.count()), static_cast<long>(ns.count())}};
}

// A point of one of the two clocks that the kernel waits on, rounded up; what is out of its range,
// cut off.
template <class Rep, class Period>
deadline deadline_at(clockid_t clock, const std::chrono::duration<Rep, Period> &since_epoch)
{
	using namespace std::chrono;
	const double s = duration<double>(since_epoch).count();

	if (!(s > 0))
		return {clock, {0, 0}};
	if (s > farthest)
		return {clock, {static_cast<time_t>(farthest), 0}};
	const auto whole = floor<seconds>(since_epoch);
	return whole_seconds(clock, whole, ceil<nanoseconds>(since_epoch - whole));
}

template <class Duration>
deadline deadline_of(const std::chrono::time_point<std::chrono::steady_clock, Duration> &t)
{
	return deadline_at(CLOCK_MONOTONIC, t.time_since_epoch());
}

template <class Duration>
deadline deadline_of(const std::chrono::time_point<std::chrono::system_clock, Duration> &t)
{
	return deadline_at(CLOCK_REALTIME, t.time_since_epoch());
}

template <class Rep, class Period> deadline deadline_in(const std::chrono::duration<Rep, Period> &d)
{
	using namespace std::chrono;
	const auto now = steady_clock::now().time_since_epoch();
	const deadline from_now = deadline_at(CLOCK_MONOTONIC, d);

	return whole_seconds(CLOCK_MONOTONIC, seconds(from_now.at.tv_sec),
			     now + nanoseconds(from_now.at.tv_nsec));
}

template <class Clock> struct is_kernels : std::false_type {
};
template <> struct is_kernels<std::chrono::steady_clock> : std::true_type {
};
template <> struct is_kernels<std::chrono::system_clock> : std::true_type {
};

// Seconds until then, more or less: the difference of two times may be out of range, and so may one
// of them in the units of the other, in which they are compared.
template <class Clock, class Duration>
double about_left(const std::chrono::time_point<Clock, Duration> &t,
		  const typename Clock::time_point &now)
{
	using seconds = std::chrono::duration<double>;

	return seconds(t.time_since_epoch()).count() - seconds(now.time_since_epoch()).count();
}

template <class Clock, class Duration>
bool is_to_come(const std::chrono::time_point<Clock, Duration> &t,
		const typename Clock::time_point &now)
{
	const double left = about_left(t, now);

	return left > 1 || (left >= -1 && t > now);
}

// The deadline for a time of any clock.  One that the kernel does not know may run at another speed
// than ours, so it has to be looked at again (is_over) when ours says that it is time.
template <class Clock, class Duration>
deadline deadline_for(const std::chrono::time_point<Clock, Duration> &t)
{
	if constexpr (is_kernels<Clock>::value)
		return deadline_of(t);
	else {
		const auto now = Clock::now();
		const double left = about_left(t, now);

		if (!is_to_come(t, now))
			return deadline_in(std::chrono::seconds(0));
		if (left > 1) // and looked at again
			return deadline_in(std::chrono::duration<double>(left));
		return deadline_in(t - now);
	}
}

template <class Clock, class Duration>
bool is_over(const std::chrono::time_point<Clock, Duration> &t)
{
	if constexpr (is_kernels<Clock>::value)
		return true;
	else
		return !is_to_come(t, Clock::now());
}

// Tries to get something by f(deadline), which says 0 if it has, until that time.
template <class Clock, class Duration, class F>
bool get_until(const std::chrono::time_point<Clock, Duration> &t, F f)
{
	do {
		if (!f(deadline_for(t)))
			return true;
	} while (!is_over(t));
	return false;
}

// What all mutexes share.  Errors: as std::mutex and its kin, std::system_error where they may
//                          throw.
template <int Kind> class basic_mutex
{
      public:
	using native_handle_type = fg_mutex_t *;

	constexpr basic_mutex() noexcept = default;
	basic_mutex(const basic_mutex &) = delete;
	basic_mutex &operator=(const basic_mutex &) = delete;

	void lock()
	{
		check(fg_mutex_lock(&mutex_));
	}
	bool try_lock() noexcept
	{
		return !fg_mutex_trylock(&mutex_);
	}
	void unlock() noexcept
	{
		fg_mutex_unlock(&mutex_);
	}
	native_handle_type native_handle() noexcept
	{
		return &mutex_;
	}

      private:
	fg_mutex_t mutex_ = {{0, 0}, Kind, {0, 0, 0, 0, 0}};
};

template <int Kind> class basic_timed_mutex : public basic_mutex<Kind>
{
      public:
	template <class Rep, class Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &d)
	{
		return lock_by(deadline_in(d)) == 0;
	}
	template <class Clock, class Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &t)
	{
		return get_until(t, [this](const deadline &d) { return lock_by(d); });
	}

      private:
	int lock_by(const deadline &d)
	{
		return fg_mutex_timedlock(this->native_handle(), d.clock, &d.at);
	}
};

} // namespace detail

class mutex : public detail::basic_mutex<FG_MUTEX_NORMAL>
{
};
class timed_mutex : public detail::basic_timed_mutex<FG_MUTEX_NORMAL>
{
};
class recursive_mutex : public detail::basic_mutex<FG_MUTEX_RECURSIVE>
{
};
class recursive_timed_mutex : public detail::basic_timed_mutex<FG_MUTEX_RECURSIVE>
{
};

class shared_mutex
{
      public:
	using native_handle_type = fg_rwlock_t *;

	constexpr shared_mutex() noexcept = default;
	shared_mutex(const shared_mutex &) = delete;
	shared_mutex &operator=(const shared_mutex &) = delete;

	void lock()
	{
		detail::check(fg_rwlock_wrlock(&rwlock_));
	}
	bool try_lock() noexcept
	{
		return !fg_rwlock_trywrlock(&rwlock_);
	}
	void unlock() noexcept
	{
		fg_rwlock_unlock(&rwlock_);
	}
	void lock_shared()
	{
		detail::check(fg_rwlock_rdlock(&rwlock_));
	}
	bool try_lock_shared() noexcept
	{
		return !fg_rwlock_tryrdlock(&rwlock_);
	}
	void unlock_shared() noexcept
	{
		fg_rwlock_unlock(&rwlock_);
	}
	native_handle_type native_handle() noexcept
	{
		return &rwlock_;
	}

      private:
	fg_rwlock_t rwlock_ = FG_RWLOCK_INIT;
};

class shared_timed_mutex : public shared_mutex
{
      public:
	template <class Rep, class Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &d)
	{
		return write_by(detail::deadline_in(d)) == 0;
	}
	template <class Clock, class Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &t)
	{
		return detail::get_until(t,
					 [this](const detail::deadline &d) { return write_by(d); });
	}
	template <class Rep, class Period>
	bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &d)
	{
		return read_by(detail::deadline_in(d)) == 0;
	}
	template <class Clock, class Duration>
	bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &t)
	{
		return detail::get_until(t,
					 [this](const detail::deadline &d) { return read_by(d); });
	}

      private:
	int write_by(const detail::deadline &d)
	{
		return fg_rwlock_timedwrlock(native_handle(), d.clock, &d.at);
	}
	int read_by(const detail::deadline &d)
	{
		return fg_rwlock_timedrdlock(native_handle(), d.clock, &d.at);
	}
};

// With std::unique_lock<fg::mutex>, which holds its mutex.  The destructor waits for
// threads that have been notified and are on their way out; nobody else may wait then.
class condition_variable
{
      public:
	using native_handle_type = fg_cond_t *;

	constexpr condition_variable() noexcept = default;
	condition_variable(const condition_variable &) = delete;
	condition_variable &operator=(const condition_variable &) = delete;
	~condition_variable()
	{
		fg_cond_destroy(&cond_);
	}

	void notify_one() noexcept
	{
		fg_cond_signal(&cond_);
	}
	void notify_all() noexcept
	{
		fg_cond_broadcast(&cond_);
	}

	// Not noexcept: a thread may be cancelled in it.
	void wait(std::unique_lock<mutex> &lock)
	{
		detail::check(fg_cond_wait(&cond_, lock.mutex()->native_handle()));
	}
	template <class Predicate> void wait(std::unique_lock<mutex> &lock, Predicate done)
	{
		while (!done())
			wait(lock);
	}

	template <class Clock, class Duration>
	cv_status wait_until(std::unique_lock<mutex> &lock,
			     const std::chrono::time_point<Clock, Duration> &t)
	{
		// Not yet time by the caller's clock: back to the caller, which looks at its
		// condition again.
		return sleep(lock, detail::deadline_for(t)) && detail::is_over(t) ?
			   cv_status::timeout :
			   cv_status::no_timeout;
	}
	template <class Clock, class Duration, class Predicate>
	bool wait_until(std::unique_lock<mutex> &lock,
			const std::chrono::time_point<Clock, Duration> &t, Predicate done)
	{
		while (!done())
			if (wait_until(lock, t) == cv_status::timeout)
				return done();
		return true;
	}

	template <class Rep, class Period>
	cv_status wait_for(std::unique_lock<mutex> &lock,
			   const std::chrono::duration<Rep, Period> &d)
	{
		return sleep(lock, detail::deadline_in(d)) ? cv_status::timeout :
							     cv_status::no_timeout;
	}
	template <class Rep, class Period, class Predicate>
	bool wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &d,
		      Predicate done)
	{
		const detail::deadline by = detail::deadline_in(d);

		while (!done())
			if (sleep(lock, by))
				return done();
		return true;
	}

	native_handle_type native_handle() noexcept
	{
		return &cond_;
	}

      private:
	// ETIMEDOUT or 0.
	int sleep(std::unique_lock<mutex> &lock, const detail::deadline &d)
	{
		const int error = fg_cond_timedwait(&cond_, lock.mutex()->native_handle(), d.clock,
						    &d.at);

		if (error != ETIMEDOUT)
			detail::check(error);
		return error;
	}

	fg_cond_t cond_ = FG_COND_INIT;
};

// For as many threads as it is made for, round after round.  std::barrier's arrive_and_wait, and no
//                                                            more.
class barrier
{
      public:
	using native_handle_type = fg_barrier_t *;

	explicit barrier(unsigned int count)
	{
		detail::check(fg_barrier_init(&barrier_, count));
	}
	barrier(const barrier &) = delete;
	barrier &operator=(const barrier &) = delete;
	~barrier()
	{
		fg_barrier_destroy(&barrier_);
	}

	// True for one of the threads of a round.
	bool arrive_and_wait() noexcept
	{
		return fg_barrier_wait(&barrier_) == FG_BARRIER_SERIAL;
	}
	native_handle_type native_handle() noexcept
	{
		return &barrier_;
	}

      private:
	fg_barrier_t barrier_;
};

// LeastMax is a promise to the reader; every one counts to max().
template <std::ptrdiff_t LeastMax = 0x7fffffff> class counting_semaphore
{
	static_assert(LeastMax >= 0 && LeastMax <= 0x7fffffff, "semaphores count to 2^31 - 1");

      public:
	using native_handle_type = fg_sem_t *;

	static constexpr std::ptrdiff_t max() noexcept
	{
		return 0x7fffffff;
	}

	// 0 <= desired <= max()
	constexpr explicit counting_semaphore(std::ptrdiff_t desired) noexcept
	    : sem_ FG_SEM_INIT(desired)
	{
	}
	counting_semaphore(const counting_semaphore &) = delete;
	counting_semaphore &operator=(const counting_semaphore &) = delete;

	// More than max() with what there is: throws, and nothing is released.  (Threads whose
	// releases fit one by one, and not together, may leave a part.)
	void release(std::ptrdiff_t update = 1)
	{
		if (update > 1 && update > max() - value())
			detail::check(EOVERFLOW);
		for (; update > 0; update--)
			detail::check(fg_sem_post(&sem_));
	}
	void acquire()
	{
		detail::check(fg_sem_wait(&sem_));
	}
	bool try_acquire() noexcept
	{
		return !fg_sem_trywait(&sem_);
	}
	template <class Rep, class Period>
	bool try_acquire_for(const std::chrono::duration<Rep, Period> &d)
	{
		return acquire_by(detail::deadline_in(d)) == 0;
	}
	template <class Clock, class Duration>
	bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &t)
	{
		return detail::get_until(t, [this](const detail::deadline &d) {
			return acquire_by(d);
		});
	}
	native_handle_type native_handle() noexcept
	{
		return &sem_;
	}

      private:
	std::ptrdiff_t value() const noexcept
	{
		// Above it: how many threads sleep.
		return static_cast<std::uint32_t>(__atomic_load_n(&sem_.fg_state,
								  __ATOMIC_RELAXED));
	}
	int acquire_by(const detail::deadline &d)
	{
		return fg_sem_timedwait(&sem_, d.clock, &d.at);
	}

	fg_sem_t sem_;
};

using binary_semaphore = counting_semaphore<1>;

class once_flag
{
      public:
	constexpr once_flag() noexcept = default;
	once_flag(const once_flag &) = delete;
	once_flag &operator=(const once_flag &) = delete;

      private:
	template <class F, class... Args> friend void call_once(once_flag &, F &&, Args &&...);

	fg_once_t once_ = FG_ONCE_INIT;
};

namespace detail
{

// fg_once calls a function without arguments: what it is to do lies here, in the thread that calls
// it.
struct once_call {
	void (*function)(void *);
	void *argument;
};
inline thread_local once_call next_once_call{};

inline void run_once_call()
{
	const once_call call = next_once_call; // it may itself call call_once

	call.function(call.argument);
}

} // namespace detail

// If f throws, the flag stays as it was, and the exception goes to the caller.
template <class F, class... Args> void call_once(once_flag &flag, F &&f, Args &&...args)
{
	auto call = [&] { std::invoke(std::forward<F>(f), std::forward<Args>(args)...); };

	detail::next_once_call = {[](void *c) { (*static_cast<decltype(call) *>(c))(); }, &call};
	detail::check(fg_once(&flag.once_, detail::run_once_call));
}

} // namespace fg

#endif
