//! Lets a file operation fail, or the process "die" (a panic that only the test catches), at a chosen place.

use std::cell::{Cell, RefCell};

/// What happens at the chosen place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InjectedFault {
    Die,
    Fail(i32),
}

type Hook = Box<dyn FnMut(&str)>;

thread_local! {
    static PLAN: Cell<Option<(u32, InjectedFault)>> = const { Cell::new(None) };
    static SEEN: Cell<u32> = const { Cell::new(0) };
    static PLAIN: Cell<bool> = const { Cell::new(false) };
    static BARE: Cell<bool> = const { Cell::new(false) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// The text of the panic that stands for SIGKILL.
pub(crate) const DEATH: &str = "killed here on purpose";

/// From now on the `at`th file operation of this thread goes wrong; `None`: none.
pub(crate) fn arm_fault(at: Option<(u32, InjectedFault)>) {
    SEEN.set(0);
    PLAN.set(at);
}

/// Number of file operations since [`arm_fault`].
pub(crate) fn count_operations() -> u32 {
    SEEN.get()
}

/// Pretends that the file system knows neither exchange nor no-replace.
pub(crate) fn plain_file_system(on: bool) {
    PLAIN.set(on);
}

/// Pretends that it knows no hard links either.
pub(crate) fn bare_file_system(on: bool) {
    PLAIN.set(on);
    BARE.set(on);
}

pub(crate) fn set_hook(hook: Option<Hook>) {
    HOOK.with(|h| *h.borrow_mut() = hook);
}

/// A place where nothing can fail, but somebody else may do something.
pub(crate) fn pass_point(point: &str) {
    let taken = HOOK.with(|h| h.borrow_mut().take());
    if let Some(mut taken) = taken {
        taken(point);
        HOOK.with(|h| *h.borrow_mut() = Some(taken));
    }
}

pub(crate) fn reach_operation(point: &str) -> std::io::Result<()> {
    pass_point(point);
    SEEN.set(SEEN.get() + 1);
    match PLAN.get() {
        Some((at, what)) if at == SEEN.get() => match what {
            InjectedFault::Die => std::panic::panic_any(DEATH),
            InjectedFault::Fail(errno) => Err(std::io::Error::from_raw_os_error(errno)),
        },
        _ => Ok(()),
    }
}

pub(crate) fn without_flags() -> bool {
    PLAIN.get()
}

pub(crate) fn without_links() -> bool {
    BARE.get()
}
