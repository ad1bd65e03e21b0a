//! What the node tells a service manager.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;

use super::node::{Node, PATIENCE, Place};

/// What the manager hears next.
fn heard(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 64];
    let count = manager.recv(&mut bytes).expect("the node said nothing");
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

fn is_told(number: u8, manager: &UnixDatagram, variable: &str) {
    let place = Place::new(number);
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
    command.env("NOTIFY_SOCKET", variable);
    let node = Node::start_by(command, &place.ip(), &place.data(), &[]);
    assert_eq!(heard(manager), "READY=1");
    node.line("Startup complete");
    node.signal("-TERM");
    assert_eq!(heard(manager), "STOPPING=1");
}

#[test]
fn a_service_manager_is_told_that_the_node_serves_and_stops() {
    let place = Place::new(75);
    let path = place.dir.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    is_told(76, &manager, path.to_str().unwrap());
}

#[test]
fn its_socket_may_have_a_name_without_a_path() {
    let name = format!("helenus-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    is_told(77, &manager, &format!("@{name}"));
}
