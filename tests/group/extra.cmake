#These include the insides of a group; the others use the wrapper, which has a Shape of its own.
lacuna_unity_group(group_inside group / deal_test.cpp loopback_test.cpp)
