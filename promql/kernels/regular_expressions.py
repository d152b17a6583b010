"""Runs the program of a regular expression on texts. This is a Pike VM: it advances all threads (paths through the
program) by one character at a time.

Threads are kept in the order in which backtracking would try them. The first thread that matches has priority over
those after it, as in Go and Perl. The time is at most the length of the text times the length of the program.
"""

import numpy as np
from numba import njit

MATCH, CHARACTERS, SPLIT, JUMP, SAVE, ASSERT = 0, 1, 2, 3, 4, 5
LINE_FEED = 10


@njit(cache=True, nogil=True)
def _is_word(code):
    return (48 <= code <= 57) or (65 <= code <= 90) or code == 95 or (97 <= code <= 122)


@njit(cache=True, nogil=True)
def _assertion_holds(assertion, text, at):
    """Whether a zero-width assertion holds at a position."""
    if assertion == 0:
        return at == 0
    if assertion == 1:
        return at == len(text)
    if assertion == 2:
        return at == 0 or text[at - 1] == LINE_FEED
    if assertion == 3:
        return at == len(text) or text[at] == LINE_FEED
    is_boundary = (at > 0 and _is_word(text[at - 1])) != (at < len(text) and _is_word(text[at]))
    return is_boundary == (assertion == 4)


@njit(cache=True, nogil=True)
def _in_ranges(ranges, first, high, code):
    end = high
    while first < high:
        middle = (first + high) >> 1
        if ranges[middle, 1] < code:
            first = middle + 1
        else:
            high = middle
    return first < end and ranges[first, 0] <= code


@njit(cache=True, nogil=True)
def _add_threads(start, code, text, at, current, visited, generation, threads, captures, count, stack):
    """Follow an instruction without consuming a character, and add the threads that it leads to after the existing
    `count`, in order of priority. An instruction that another thread has already reached is skipped. `current` are the
    captures of the thread. Returns the number of threads.
    """
    stack[0, 0], stack[0, 1] = start, -1
    depth = 1
    while depth:
        depth -= 1
        step, saved = stack[depth, 0], stack[depth, 1]
        if step < 0:
            # Restore a capture: threads of lower priority have not passed it.
            current[-step - 1] = saved
            continue
        if visited[step] == generation:
            continue
        visited[step] = generation
        operation, first, second = code[step, 0], code[step, 1], code[step, 2]
        if operation == SPLIT:
            stack[depth, 0] = second
            stack[depth + 1, 0] = first
            depth += 2
        elif operation == JUMP:
            stack[depth, 0] = first
            depth += 1
        elif operation == SAVE:
            stack[depth, 0], stack[depth, 1] = -first - 1, current[first]
            current[first] = at
            stack[depth + 1, 0] = step + 1
            depth += 2
        elif operation == ASSERT:
            if _assertion_holds(first, text, at):
                stack[depth, 0] = step + 1
                depth += 1
        else:
            threads[count] = step
            for slot in range(len(current)):
                captures[count, slot] = current[slot]
            count += 1
    return count


@njit(cache=True, nogil=True)
def find_matches(code_points, offsets, code, ranges, found):
    """Write the captures of the first match in each text `code_points[offsets[i] : offsets[i + 1]]` to row i."""
    size, width = len(code), found.shape[1]
    visited = np.zeros(size, dtype=np.int64)
    threads, next_threads = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    captures, next_captures = np.empty((size, width), dtype=np.int64), np.empty((size, width), dtype=np.int64)
    stack = np.empty((2 * size + 2, 2), dtype=np.int64)
    current = np.empty(width, dtype=np.int64)
    generation = 0
    for row in range(len(offsets) - 1):
        text = code_points[offsets[row] : offsets[row + 1]]
        count = 0
        generation += 1
        is_found = False
        for at in range(len(text) + 1):
            if not is_found:
                # A match that starts here has lower priority than those that started earlier.
                for slot in range(width):
                    current[slot] = -1
                count = _add_threads(0, code, text, at, current, visited, generation, threads, captures, count, stack)
            if count == 0:
                if is_found:
                    break
                generation += 1
                continue
            generation += 1
            next_count = 0
            for thread in range(count):
                step = threads[thread]
                if code[step, 0] == MATCH:
                    for slot in range(width):
                        found[row, slot] = captures[thread, slot]
                    is_found = True
                    break
                if at < len(text) and _in_ranges(ranges, code[step, 1], code[step, 2], text[at]):
                    for slot in range(width):
                        current[slot] = captures[thread, slot]
                    next_count = _add_threads(
                        step + 1,
                        code,
                        text,
                        at + 1,
                        current,
                        visited,
                        generation,
                        next_threads,
                        next_captures,
                        next_count,
                        stack,
                    )
            threads, next_threads = next_threads, threads
            captures, next_captures = next_captures, captures
            count = next_count
