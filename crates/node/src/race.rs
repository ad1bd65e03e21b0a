//! Waiting for whichever of two comes first.

use std::future::Future;
use std::task::Poll;

/// What the one comes to, unless the other ends first.
pub(crate) async fn first<T>(
    one: impl Future<Output = T>,
    other: impl Future<Output = ()>,
) -> Option<T> {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(move |cx| match one.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => other.as_mut().poll(cx).map(|()| None),
    })
    .await
}
