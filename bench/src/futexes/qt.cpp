// SPDX-License-Identifier: MIT
// Qt: QMutex, QSemaphore.
#include <QMutex>
#include <QSemaphore>

#include "driver.h"

static QMutex lock;
static QSemaphore semaphore[MOST_PLACES];

void bench_begin(unsigned)
{
}

void bench_section(void (*inside)(void))
{
	QMutexLocker held(&lock);
	inside();
}

void bench_put(unsigned place)
{
	semaphore[place].release();
}

void bench_take(unsigned place)
{
	semaphore[place].acquire();
}
