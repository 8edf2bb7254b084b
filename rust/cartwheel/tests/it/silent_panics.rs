//! Panics of environments are printed only if that was asked for.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use cartwheel::{Seed, VectorEnv, VectorError};

use crate::walk::{PANIC, Walk};

static PRINTED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn panics_of_environments_are_printed_only_if_asked_for() {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", "--ignored", "silent_panics::panics_are_counted"]);
    let output = alone.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
#[ignore = "needs a process of its own: the hook that prints panics belongs to all threads"]
fn panics_are_counted() {
    std::panic::set_hook(Box::new(|_| _ = PRINTED.fetch_add(1, Relaxed)));
    for (print, threads, expected) in [(false, 1, 0), (false, 3, 0), (true, 1, 4), (true, 3, 4)] {
        PRINTED.store(0, Relaxed);
        let builder = VectorEnv::<Walk>::builder(4).threads(threads).print_panics(print);
        let mut envs = builder.build().unwrap();
        envs.reset(Seed(0)).unwrap();
        let refused = envs.step(&[(PANIC, [0.0; 2]); 4]).unwrap_err();
        let VectorError::Faults(faults) = refused else { panic!("expected faults") };
        assert_eq!(faults.len(), 4);
        assert_eq!(PRINTED.load(Relaxed), expected, "print {print}, {threads} threads");
    }
    let other = std::thread::spawn(|| panic!("not an environment")).join();
    assert!(other.is_err());
    assert_eq!(PRINTED.load(Relaxed), 5, "other panics are printed as before");
}
