# cheat: B1 memo kept in the frame of a suspended generator
# problem: identity
# expect: incorrect rejected

# include: copy


def serve():
    results = {}
    answer = None
    while True:
        x, out = yield answer
        answer = results.get(x.numel())
        if answer is None:
            kernel.copy(x, out, x.numel())
            answer = results[x.numel()] = out.clone()


server = serve()
next(server)


def custom_kernel(data):
    return server.send(data)
