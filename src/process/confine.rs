//! Confines the calling thread, and with it every program that it starts from then on: Landlock for files and
//! signals, seccomp for what Landlock does not know.
//!
//! It is a thread of the supervisor, which itself stays outside: so the program cannot signal it.

use super::command::SandboxLayer;
use super::mounts::SYSTEM;
use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp as Op, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Devices that every program may write.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Calls that reach other processes, the kernel's insides, or out of the namespaces.
const DENIED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_userfaultfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// Without a namespace of their own these reach every process of the user. There are no sockets but connected
/// pairs.
const DENIED_IN_PARTIAL: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
];

/// Programs have another way where these do not exist. What they do cannot be looked through.
const ABSENT: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Confines the calling thread for good. Where anything of it cannot be had, the program must not be started.
pub(super) fn confine_thread(layer: SandboxLayer, read: &[PathBuf], write: &[PathBuf]) -> Result<(), String> {
    drop_capabilities().map_err(|error| format!("capabilities: {error}"))?;
    restrict_files(layer, read, write)?;
    restrict_calls(layer).map_err(|why| format!("seccomp: {why}"))
}

/// What root may do beyond its own files would reach around Landlock; without new privileges it does not come
/// back at an exec.
fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let (effective, permitted, inheritable) =
        (CapabilitySet::empty(), CapabilitySet::empty(), CapabilitySet::empty());
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
}

fn restrict_files(layer: SandboxLayer, read: &[PathBuf], write: &[PathBuf]) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock: {error}");
    let own = |paths: &[&str]| -> Vec<PathBuf> { paths.iter().map(PathBuf::from).collect() };
    let (mut readable, mut writable) = (read.to_vec(), write.to_vec());
    if layer == SandboxLayer::Full {
        // What else is there is not there at all.
        readable = own(&["/"]);
        writable.extend(own(&["/tmp", "/var/tmp", "/dev"]));
    } else {
        readable.extend(own(SYSTEM));
        readable.extend(own(&["/proc", "/dev"]));
        writable.extend(own(DEVICES));
    }
    let there = |paths: Vec<PathBuf>| paths.into_iter().filter(|path| Path::exists(path)).collect::<Vec<_>>();
    // What truncates a file is known from the third version on; an older one would leave that open.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))
        .map_err(failed)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))
        .map_err(failed)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)
        .map_err(failed)?;
    let restricted = ruleset
        .create()
        .map_err(failed)?
        .add_rules(path_beneath_rules(there(readable), AccessFs::from_read(ABI::V5)))
        .map_err(failed)?
        .add_rules(path_beneath_rules(there(writable), AccessFs::from_all(ABI::V5)))
        .map_err(failed)?
        .restrict_self()
        .map_err(failed)?;
    match restricted.ruleset {
        RulesetStatus::NotEnforced => Err("Landlock: this kernel does not enforce it".to_owned()),
        _ => Ok(()),
    }
}

fn restrict_calls(layer: SandboxLayer) -> Result<(), seccompiler::Error> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let is = |argument, operator, value: u64| SeccompCondition::new(argument, Dword, operator, value);
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        clone.push(SeccompRule::new(vec![is(0, Op::MaskedEq(flag), flag)?])?);
    }
    denied.insert(libc::SYS_clone, clone);
    // Typing into somebody's terminal.
    let typing = [0x5412, 0x541C].into_iter().map(|request| SeccompRule::new(vec![is(1, Op::Eq, request)?]));
    denied.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    if layer == SandboxLayer::Full {
        denied.insert(libc::SYS_socket, denied_sockets()?);
    } else {
        denied.extend(DENIED_IN_PARTIAL.iter().map(|call| (*call, Vec::new())));
        // A pair of datagram sockets can send elsewhere too.
        let datagram = SeccompRule::new(vec![is(1, Op::MaskedEq(0xf), socket_number(libc::SOCK_DGRAM))?])?;
        denied.insert(libc::SYS_socketpair, vec![datagram]);
    }
    apply_calls(denied, libc::EPERM)?;
    apply_calls(ABSENT.iter().map(|call| (*call, Vec::new())).collect(), libc::ENOSYS)
}

/// Of sockets in a network of one's own stay those of ordinary work: local ones, TCP, UDP, and asking for the
/// network's interfaces.
fn denied_sockets() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let is = |argument, operator, value: libc::c_int| {
        SeccompCondition::new(argument, Dword, operator, socket_number(value))
    };
    let kinds = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let other = kinds.into_iter().map(|kind| is(0, Op::Ne, kind)).collect::<Result<Vec<_>, _>>()?;
    Ok(vec![
        SeccompRule::new(other)?,
        SeccompRule::new(vec![is(0, Op::Eq, libc::AF_NETLINK)?, is(2, Op::Ne, libc::NETLINK_ROUTE)?])?,
        SeccompRule::new(vec![is(0, Op::Ne, libc::AF_NETLINK)?, is(1, Op::MaskedEq(0xf), libc::SOCK_RAW)?])?,
        SeccompRule::new(vec![is(0, Op::Ne, libc::AF_NETLINK)?, is(2, Op::Eq, libc::IPPROTO_MPTCP)?])?,
    ])
}

fn socket_number(number: libc::c_int) -> u64 {
    u64::from(number.cast_unsigned())
}

fn apply_calls(
    mut rules: BTreeMap<i64, Vec<SeccompRule>>,
    answer: libc::c_int,
) -> Result<(), seccompiler::Error> {
    if cfg!(target_arch = "x86_64") {
        // The same calls by the numbers of the x32 interface.
        let x32: Vec<_> = rules.iter().map(|(call, rules)| (call | 0x4000_0000, rules.clone())).collect();
        rules.extend(x32);
    }
    let answer = SeccompAction::Errno(answer.cast_unsigned());
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, target)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)
}
