//! The first error of a run and its logs, in a few words.

use crate::domain::proof::run::{FirstErrorIn, Log, Run};

/// Place and words of the first error in at most `most` lines, not yet made fit for a terminal; none
/// where no error was found.
pub(super) fn error_lines(run: &Run, most: usize) -> Vec<String> {
    let Some(FirstErrorIn { error, .. }) = &run.first_error else { return Vec::new() };
    let place = error.path.as_ref().map(|path| {
        let numbers = [error.row, error.column].into_iter().map_while(|number| number);
        numbers.fold(path.clone(), |place, number| format!("{place}:{number}"))
    });
    let words = error.text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned);
    place.into_iter().chain(words).take(most).collect()
}

/// The stream of a log and size in words.
pub(super) fn log_size(log: &Log) -> String {
    if log.truncated {
        format!("{}, {} of {} bytes", log.stream, log.bytes, log.total_bytes)
    } else {
        format!("{}, {} bytes", log.stream, log.bytes)
    }
}
